import MartletCore
import MartletIO
import Testing

@Suite struct ResolverTests {
    private func code(_ resolver: Resolver, _ host: String) async -> ErrorCode? {
        do {
            _ = try await resolver.resolve(host: host, port: 1)
            return nil
        } catch {
            return error.code
        }
    }

    @Test(arguments: ["127.0.0.1", "::1"])
    func `resolves literals immediately, even when it has stopped`(host: String) async throws {
        let resolver = try Resolver()
        resolver.shutdown()
        let found = try await resolver.resolve(host: host, port: 80)
        #expect(found.map(\.addressText) == [host] && found.first?.port == 80)
    }

    @Test func `resolves localhost`() async throws {
        let resolver = try Resolver()
        defer { resolver.shutdown() }
        let found = try await resolver.resolve(host: "localhost", port: 6379)
        #expect(found.contains { ["127.0.0.1", "::1"].contains($0.addressText) && $0.port == 6379 })
    }

    @Test(arguments: ["", "a\u{0}b", String(repeating: "a", count: 254)])
    func `rejects invalid names`(host: String) async throws {
        let resolver = try Resolver()
        defer { resolver.shutdown() }
        #expect(await code(resolver, host) == "resolver.name_invalid")
    }

    @Test func `completes every query when it is stopped in between`() async throws {
        let resolver = try Resolver()
        let codes = await withTaskGroup(of: ErrorCode?.self) { group in
            for _ in 0..<50 { group.addTask { await code(resolver, "localhost") } }
            resolver.shutdown()
            return await group.reduce(into: [ErrorCode?]()) { $0.append($1) }
        }
        #expect(codes.count == 50 && codes.allSatisfy { $0 == nil || $0 == "resolver.stopped" })
        #expect(await code(resolver, "localhost") == "resolver.stopped")
    }
}
