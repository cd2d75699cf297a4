import MartletCore
import MartletTesting
import Testing

@testable import MartletJOSE

@Suite(.timeLimit(.minutes(1))) struct UnknownKeyTests {
    @Test func `a rotated key is found by the first token that names it`() async throws {
        let instance = try Instance()
        _ = try await instance.resolve("ONE")
        instance.issuer.respond(try Instance.document([1, 2]))
        #expect(try instance.lookup("THREE") == "undecided")
        #expect(try await instance.resolve("THREE") == "THREE")
        #expect(instance.issuer.fetches == 2)
        #expect(instance.removed.value.map(\.text) == ["ONE"])
        #expect(try instance.lookup("TWO") == "TWO")
    }

    @Test func `another key with an old ID is reported`() async throws {
        let instance = try Instance()
        _ = try await instance.resolve("ONE")
        instance.issuer.respond(try AppleFixture.document([SigningKey("ONE"), ScriptedIssuer.keys.get()[1]]))
        #expect(try await instance.resolve("THREE") == "unknown")
        #expect(instance.removed.value.map(\.text) == ["ONE"])
        #expect(try instance.lookup("ONE") == "ONE")
    }

    @Test func `unknown keys cost one request per cooldown`() async throws {
        let instance = try Instance()
        _ = try await instance.resolve("ONE")
        for number in 0..<5000 { #expect(try await instance.resolve("random-\(number)") == "unknown") }
        #expect(instance.issuer.fetches == 2)
        instance.time.advance(by: .seconds(59))
        #expect(try instance.lookup("one-more") == "unknown")
        instance.time.advance(by: .seconds(1))
        #expect(try instance.lookup("one-more") == "undecided")
        for number in 5000..<10_000 { #expect(try await instance.resolve("random-\(number)") == "unknown") }
        #expect(instance.issuer.fetches == 3)
        #expect(try instance.lookup("ONE") == "ONE")
    }

    @Test func `the absence of a key is cached`() async throws {
        let instance = try Instance()
        _ = try await instance.resolve("ONE")
        #expect(try await instance.resolve("nobody") == "unknown")
        instance.time.advance(by: .seconds(299))
        #expect(try instance.lookup("nobody") == "unknown")
        #expect(try instance.lookup("somebody") == "undecided")
        instance.time.advance(by: .seconds(1))
        #expect(try instance.lookup("nobody") == "undecided")
    }

    @Test func `a new key is used although its absence was cached`() async throws {
        let instance = try Instance()
        await instance.keys.start()
        #expect(try await instance.resolve("THREE") == "unknown")
        instance.issuer.respond(try Instance.document([0, 1, 2]))
        #expect(try instance.lookup("THREE") == "unknown")
        instance.time.advance(by: .seconds(60))
        _ = try await instance.resolve("nobody")
        #expect(try instance.lookup("THREE") == "THREE")
        await instance.keys.stop()
    }

    @Test func `a failing issuer does not make known keys unknown`() async throws {
        let instance = try Instance()
        _ = try await instance.resolve("ONE")
        instance.issuer.fail()
        #expect(try await instance.resolve("THREE") == "unavailable")
        #expect(try await instance.resolve("FOUR") == "unavailable")
        instance.time.advance(by: .seconds(59))
        #expect(try await instance.resolve("FIVE") == "unavailable")
        instance.time.advance(by: .seconds(1))
        #expect(try await instance.resolve("FIVE") == "unavailable")
        #expect(instance.issuer.fetches == 3)
        #expect(try instance.lookup("TWO") == "TWO")
        // Its absence was not confirmed: it is fetched again after the cooldown.
        instance.issuer.respond(try Instance.document([0, 1, 2]))
        instance.time.advance(by: .seconds(60))
        #expect(try await instance.resolve("THREE") == "THREE")
    }

    @Test func `a key that the issuer did not have stays unknown while it fails`() async throws {
        let instance = try Instance()
        _ = try await instance.resolve("ONE")
        #expect(try await instance.resolve("nobody") == "unknown")
        instance.issuer.fail()
        instance.time.advance(by: .seconds(60))
        #expect(try await instance.resolve("somebody") == "unavailable")
        #expect(try await instance.resolve("nobody") == "unknown")
    }

    @Test func `a failed refresh for another reason does not confirm an absence either`() async throws {
        let instance = try Instance()
        await instance.keys.start()
        instance.issuer.fail()
        instance.issuer.hold()
        instance.time.advance(by: Instance.ttl)
        try await eventually("the refresh is under way") { instance.issuer.fetches == 2 }
        async let word = instance.resolve("THREE")
        // With the task that refreshes.
        try await eventually("it waits") { instance.keys.waiters == 2 }
        instance.issuer.release()
        #expect(try await word == "unavailable")
        // The result of a successful refresh counts for all callers.
        instance.issuer.respond(try Instance.document([0, 1]))
        #expect(try await instance.resolve("FOUR") == "unknown")
        await instance.keys.stop()
        #expect(try instance.lookup("SIX") == "unavailable" && instance.lookup("TWO") == "TWO")
    }

    @Test func `memory does not grow with what clients send`() async throws {
        let instance = try Instance()
        _ = try await instance.resolve("ONE")
        for number in 0..<2000 {
            _ = try await instance.resolve("k\(number)")
            instance.time.advance(by: .milliseconds(100))
        }
        // A flood of 200 s: one request in each minute.
        #expect(instance.issuer.fetches == 1 + 4)
    }

    @Test func `an unusable key is distinguished and not fetched again`() async throws {
        let key = try ScriptedIssuer.keys.get()[0]
        let members = try key.jwk(["kid": "ENC", "use": "enc"]).map { "\"\($0.key)\":\"\($0.value)\"" }.joined(
            separator: ",")
        let good = try key.jwk().map { "\"\($0.key)\":\"\($0.value)\"" }.joined(separator: ",")
        let instance = try Instance(issuer: ScriptedIssuer(Array("{\"keys\":[{\(members)},{\(good)}]}".utf8)))
        #expect(try await instance.resolve("ENC") == "unusable")
        #expect(try instance.lookup("ENC") == "unusable")
        #expect(instance.issuer.fetches == 1)
    }
}
