import MartletCore
import MartletIO
import MartletTesting
import Testing

@testable import MartletUpstreams

/// A resolver that asks a name server of the test's own.
private final class Stage: Sendable {
    let loop: ServiceLoop
    let server: DNSServer
    let resolver: NameResolver

    init(deadline: Duration = .seconds(20), _ script: @escaping DNSServer.Script) throws {
        loop = try ServiceLoop(name: "names")
        server = try DNSServer(script)
        resolver = NameResolver(on: loop, servers: server.address, deadline: deadline)
    }

    deinit {
        resolver.shutdown()
        loop.shutdown()
    }

    func resolve(_ host: String, _ family: NameQuestion.Family = .any) async -> NameReply {
        await resolver.resolve(NameQuestion(host: host, family: family))
    }
}

private func endpoint(_ literal: String) throws -> SocketEndpoint {
    try #require(SocketEndpoint(literal: literal, port: 0))
}

private func a(_ name: String, _ last: UInt8, seconds: UInt32 = 60) -> DNSServer.Record {
    .address(name, [10, 0, 0, last], seconds: seconds)
}

private func aaaa(_ name: String, _ last: UInt8, seconds: UInt32 = 60) -> DNSServer.Record {
    .address(name, [0xFD] + [UInt8](repeating: 0, count: 14) + [last], seconds: seconds)
}

@Suite struct `Looking up names with c-ares` {
    @Test func `addresses of both families, each with the least validity of its records`() async throws {
        let stage = try Stage { question in
            question.type == 1
                ? .records([a("api.test", 2, seconds: 30), a("api.test", 1, seconds: 20)])
                : .records([aaaa("api.test", 1, seconds: 90)])
        }
        let reply = await stage.resolve("api.test")
        guard case .found(let ipv4, let validity) = reply.ipv4 else { return #expect(Bool(false), "\(reply)") }
        #expect(Set(ipv4) == [try endpoint("10.0.0.1"), try endpoint("10.0.0.2")] && validity == .seconds(20))
        #expect(reply.ipv6 == .found([try endpoint("fd00::1")], validity: .seconds(90)))
        #expect(Set(stage.server.questions.map(\.type)) == [1, 28])
    }

    @Test(arguments: [(NameQuestion.Family.ipv4, [UInt16(1)]), (.ipv6, [28])])
    func `one family alone is not asked for the other`(_ family: NameQuestion.Family, types: [UInt16]) async throws {
        let stage = try Stage { $0.type == 1 ? .records([a("api.test", 1)]) : .records([aaaa("api.test", 1)]) }
        let reply = await stage.resolve("api.test", family)
        #expect(stage.server.questions.map(\.type) == types)
        #expect((reply.ipv4 == .unasked) == (family == .ipv6) && (reply.ipv6 == .unasked) == (family == .ipv4))
    }

    @Test func `an alias counts with its validity`() async throws {
        let stage = try Stage { question in
            guard question.type == 1 else { return .code(0) }
            return .records([
                .alias("api.test", of: "middle.test", seconds: 5), .alias("middle.test", of: "real.test", seconds: 50),
                a("real.test", 7, seconds: 300),
            ])
        }
        let reply = await stage.resolve("api.test")
        #expect(reply.ipv4 == .found([try endpoint("10.0.0.7")], validity: .seconds(5)))
        #expect(reply.ipv6 == .absent("the name has no address"))
    }

    @Test(arguments: [(UInt32(0), 0), (1, 1), (1_000_000_000, 1_000_000_000), (0xFFFF_FFFF, 0)])
    func `any validity`(_ seconds: UInt32, expected: Int) async throws {
        let stage = try Stage { _ in .records([a("api.test", 1, seconds: seconds)]) }
        let reply = await stage.resolve("api.test", .ipv4)
        #expect(reply.ipv4 == .found([try endpoint("10.0.0.1")], validity: .seconds(expected)))
    }

    @Test func `a thousand addresses come over TCP`() async throws {
        let stage = try Stage { _ in
            .records((0..<1000).map { .address("api.test", [10, 0, UInt8($0 / 256), UInt8($0 % 256)], seconds: 60) })
        }
        let reply = await stage.resolve("api.test", .ipv4)
        guard case .found(let list, _) = reply.ipv4 else { return #expect(Bool(false), "\(reply)") }
        #expect(Set(list).count == 1000)
        #expect(stage.server.questions.map(\.isTCP) == [false, true])
    }

    @Test func `names that do not exist, errors and malformed replies differ`() async throws {
        let missing = try Stage { _ in .code(3) }
        #expect(await missing.resolve("api.test", .ipv4).ipv4 == .absent("the name does not exist"))
        let empty = try Stage { _ in .records([]) }
        #expect(await empty.resolve("api.test", .ipv4).ipv4 == .absent("the name has no address"))
        for code: UInt8 in [1, 2, 4, 5] {
            let failing = try Stage { _ in .code(code) }
            let reply = await failing.resolve("api.test", .ipv4)
            guard case .failed = reply.ipv4 else { return #expect(Bool(false), "\(code): \(reply)") }
        }
        for count in [3, 12, 20, 27, 30, 40] {
            let malformed = try Stage(deadline: .milliseconds(500)) { _ in .cut(count, of: [a("api.test", 1)]) }
            let reply = await malformed.resolve("api.test", .ipv4)
            guard case .failed = reply.ipv4 else { return #expect(Bool(false), "\(count): \(reply)") }
        }
        let garbage = try Stage(deadline: .milliseconds(500)) { _ in .garbage([UInt8](repeating: 0xC0, count: 300)) }
        guard case .failed = await garbage.resolve("api.test", .ipv4).ipv4 else { return #expect(Bool(false)) }
    }

    @Test func `a reply with another ID is ignored, and silence ends at the deadline`() async throws {
        let wrong = try Stage(deadline: .milliseconds(300)) { _ in .wrongID([a("api.test", 1)]) }
        let start = ContinuousClock.now
        #expect(await wrong.resolve("api.test") == NameReply(failed: "no name server responded in time", .any))
        #expect(ContinuousClock.now - start >= .milliseconds(300))
        let silent = try Stage(deadline: .milliseconds(300)) { _ in .silence }
        #expect(await silent.resolve("api.test", .ipv6) == NameReply(failed: "no name server responded in time", .ipv6))
    }

    @Test func `a lost query is repeated`() async throws {
        let count = Box(0)
        let stage = try Stage { _ in
            count.withLock { $0 += 1 }
            return count.value == 1 ? .silence : .records([a("api.test", 1)])
        }
        #expect(
            await stage.resolve("api.test", .ipv4).ipv4 == .found([try endpoint("10.0.0.1")], validity: .seconds(60)))
    }

    @Test func `a failure of one family leaves the other`() async throws {
        let stage = try Stage { $0.type == 1 ? .records([a("api.test", 1)]) : .code(2) }
        let reply = await stage.resolve("api.test")
        #expect(reply.ipv4 == .found([try endpoint("10.0.0.1")], validity: .seconds(60)))
        guard case .failed = reply.ipv6 else { return #expect(Bool(false), "\(reply)") }
    }

    @Test func `names of the hosts file are not asked for, and their addresses have no validity`() async throws {
        let stage = try Stage { _ in .records([a("localhost", 9)]) }
        let reply = await stage.resolve("localhost")
        guard case .found(let list, nil) = reply.ipv4 else { return #expect(Bool(false), "\(reply)") }
        #expect(list == [try endpoint("127.0.0.1")])
        #expect(stage.server.questions.isEmpty)
    }

    @Test func `hundreds of lookups at a time`() async throws {
        let stage = try Stage { question in
            let number = UInt8(question.name.dropFirst(1).prefix { $0 != "." }) ?? 0
            return question.type == 1 ? .records([a(question.name, number)]) : .code(3)
        }
        await withTaskGroup(of: Void.self) { group in
            for number in UInt8(0)..<200 {
                group.addTask {
                    let reply = await stage.resolve("n\(number).test")
                    let expected = SocketEndpoint(literal: "10.0.0.\(number)", port: 0).map { [$0] } ?? []
                    #expect(reply.ipv4 == .found(expected, validity: .seconds(60)))
                }
            }
        }
    }

    @Test func `silence of hundreds ends at their deadline, and others are looked up then`() async throws {
        let stage = try Stage(deadline: .milliseconds(500)) {
            $0.name.hasPrefix("silent") ? .silence : .records([a($0.name, 1)])
        }
        let start = ContinuousClock.now
        let (stream, continuation) = AsyncStream.makeStream(of: Duration.self)
        for number in 0..<300 {
            stage.resolver.resolve(NameQuestion(host: "silent\(number).test", family: .ipv4)) { _ in
                continuation.yield(ContinuousClock.now - start)
            }
        }
        var count = 0
        for await passed in stream {
            #expect(passed > .milliseconds(400) && passed < .seconds(10))
            count += 1
            if count == 300 { break }
        }
        // c-ares gives up the lookups that no one waits for.
        for _ in 0..<100 {
            if case .found = await stage.resolve("good.test", .ipv4).ipv4 { return }
        }
        #expect(Bool(false), "no lookup succeeds")
    }

    @Test(arguments: [
        "", ".", "a..b", "-", String(repeating: "a", count: 64) + ".test", "a b", "\u{0}", "ünïcode.test",
    ])
    func `no name ends the process`(_ host: String) async throws {
        let stage = try Stage(deadline: .milliseconds(300)) { _ in .code(3) }
        let reply = await stage.resolve(host)
        if case .found = reply.ipv4 { #expect(Bool(false), "\(reply)") }
    }

    @Test func `lookups end with the resolver`() async throws {
        let stage = try Stage { _ in .silence }
        let (stream, continuation) = AsyncStream.makeStream(of: NameReply.self)
        for number in 0..<100 {
            stage.resolver.resolve(NameQuestion(host: "n\(number).test", family: .any)) { continuation.yield($0) }
        }
        stage.resolver.shutdown()
        var count = 0
        for await reply in stream {
            guard case .failed = reply.ipv4 else { return #expect(Bool(false), "\(reply)") }
            count += 1
            if count == 100 { break }
        }
        stage.loop.shutdown()
        guard case .failed = await stage.resolve("late.test").ipv4 else { return #expect(Bool(false)) }
    }
}
