import MartletConfig
import Testing

@Suite struct RateLimitConfigurationTests {
    @Test func `limits and the routes' use of them are decoded`() throws {
        let configuration = try #require(load(fullSample).0)
        let limits = configuration.server.rateLimits
        #expect(limits.map(\.name.value) == ["per_person", "per_address", "logins"])
        #expect(configuration.sessions.loginLimits.map(\.value) == ["logins"])
        #expect(limits[0].keys == [.subject] && limits[0].burst == 200 && limits[0].needsCaller)
        #expect(limits[0].rate == RequestRate(count: 100))
        #expect(limits[1].keys == [.address, .header("x-key"), .host, .route, .provider])
        #expect(limits[1].rate == RequestRate(count: 20, perSeconds: 60) && limits[1].burst == 20)
        #expect(!limits[0].isShared && limits[0].onStoreError == .local)
        #expect(limits[1].isShared && limits[1].onStoreError == .deny)
        #expect(configuration.server.limits.rateEntries == 64)
        let api = try #require(configuration.routes.first { $0.name.value == "api" }).limits
        #expect(api.rates.map(\.value) == ["per_person", "per_address"] && api.announces && api.concurrency == 100)
        let other = try #require(configuration.routes.first { $0.name.value == "public" }).limits
        #expect(other.isEmpty && !other.announces)
    }

    @Test func `an overload is decoded, and absent by default`() throws {
        let overload = try #require(load(fullSample).0?.server.overload)
        #expect(overload.loopDelay == .milliseconds(50) && overload.memoryPercent == 80)
        #expect(OverloadConfiguration().loopDelay == .milliseconds(100) && OverloadConfiguration().memoryPercent == 90)
    }

    @Test func `only subject and provider need the caller`() {
        let keys: [RateLimitConfiguration.Key] = [.subject, .provider, .address, .route, .host, .header("x")]
        #expect(keys.map(\.needsCaller) == [true, true, false, false, false, false])
        #expect(keys.map(\.text) == ["subject", "provider", "address", "route", "host", "header:x"])
    }
}
