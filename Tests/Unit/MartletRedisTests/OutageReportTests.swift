import MartletCore
import Testing

@testable import MartletRedis

@Suite struct OutageReportTests {
    private let servers = [node(1), node(2)]

    private func reply(_ reply: RedisReply) -> RedisConnection.CommandResult {
        .success(.init(reply: reply, latency: .zero))
    }

    @Test(
        arguments: [
            (TopologyQuestion.slots, RedisReply.error(kind: "ERR"), ErrorCode.redisNotCluster),
            (.slots, .array([]), .redisClusterDown), (.slots, .error(kind: "LOADING"), .redisLoading),
            (.master, .error(kind: "ERR"), .redisMasterUnknown),
        ])
    func `a question that all servers reject is an outage with a reason`(
        question: TopologyQuestion, reply: RedisReply, code: ErrorCode
    ) {
        var failures = QuestionFailures()
        failures.answered(question, by: node(1), self.reply(reply))
        #expect(failures.reason(of: servers) { _ in false } == nil)
        #expect(failures.reason(of: servers) { $0 == node(2) }?.code == code)
        failures.answered(question, by: node(2), self.reply(reply))
        #expect(failures.reason(of: servers) { _ in false }?.code == code)
        failures.answered(question, by: node(2), self.reply(.array([.integer(1)])))
        #expect(failures.reason(of: servers) { _ in false } == nil)
    }

    @Test func `a question that is not permitted names the right`() {
        var failures = QuestionFailures()
        failures.answered(.slots, by: node(1), .failure(RedisErrorReply.storeError("NOPERM")))
        failures.answered(.slots, by: node(2), .failure(.timeout))
        let reason = failures.reason(of: servers) { _ in false }
        #expect(reason?.code == .redisNotPermitted && reason?.message.contains("+cluster|slots") == true)
        failures.answered(.master, by: node(1), .failure(RedisErrorReply.storeError("NOPERM")))
        let other = failures.reason(of: [node(1)]) { _ in false }
        #expect(other?.message.contains("+sentinel|master") == true)
        // Not needed to find the master.
        failures.answered(.master, by: node(1), reply(.array([])))
        failures.answered(.sentinels, by: node(1), .failure(RedisErrorReply.storeError("NOPERM")))
        #expect(!failures.contains(node(1)))
        failures.answered(.master, by: node(1), .failure(.connectionLost))
        #expect(!failures.contains(node(1)))
    }

    @Test func `the loss of a master is reported once, and its return once`() {
        var masters = LostMasters()
        #expect(masters.update(lost: [], connected: [node(1)]).lost.isEmpty)
        var changes = masters.update(lost: [node(2), node(3)], connected: [node(1)])
        #expect(changes.lost == [node(2), node(3)] && changes.back.isEmpty)
        changes = masters.update(lost: [node(2)], connected: [node(1)])
        #expect(changes.lost.isEmpty && changes.back.isEmpty)
        changes = masters.update(lost: [], connected: servers.reduce(into: []) { $0.insert($1) })
        #expect(changes.lost.isEmpty && changes.back == [node(2)])
        // Another one has its keys now.
        masters.keep([node(1), node(2)])
        changes = masters.update(lost: [], connected: [node(1), node(2), node(3)])
        #expect(changes.lost.isEmpty && changes.back.isEmpty)
    }

    private static let command = RedisCommand([Array("GET".utf8), Array("k".utf8)], key: nil)

    private func isNew(_ change: CommandFailures.Change?) -> Bool { if case .failing = change { true } else { false } }
    private func isOver(_ change: CommandFailures.Change?) -> Bool {
        if case .succeeding = change { true } else { false }
    }

    @Test func `commands fail when several in a row have failed over a second`() {
        var failures = CommandFailures()
        func end(_ error: StoreError?, at instant: Int) -> CommandFailures.Change? {
            failures.ended(Self.command.kind, error, at: time(instant))
        }
        for _ in 0..<20 {
            let change = end(.tooManyRedirects, at: 0)
            #expect(change == nil)
        }
        #expect(failures.failure == nil)
        var change = end(.tooManyRedirects, at: 1000)
        #expect(isNew(change) && failures.failure?.code == .redisTooManyRedirects)
        change = end(.timeout, at: 1001)
        #expect(isNew(change) && failures.failure?.code == .redisTimeout)
        change = end(.overloaded, at: 1002)
        #expect(change == nil && failures.failure?.code == .redisTimeout)
        change = end(nil, at: 1003)
        #expect(isOver(change) && failures.failure == nil)
        change = end(nil, at: 1004)
        #expect(change == nil)
        for instant in 0..<4 { _ = end(.timeout, at: 2000 + instant * 1000) }
        _ = end(nil, at: 9000)
        for _ in 0..<9 { _ = end(.overloaded, at: 20_000) }
        #expect(failures.failure == nil)
    }

    @Test(
        arguments: [
            "READONLY", "LOADING", "OOM", "MOVED", "CLUSTERDOWN", "MASTERDOWN", "NOPERM", "MISCONF", "NOREPLICAS",
            "MAXCLIENTS", "UNKNOWNCOMMAND", "ERR",
        ])
    func `what a server says of itself counts at the first time, until that kind of command succeeds`(kind: String) {
        let error = RedisErrorReply.storeError(kind)
        let login = RedisScript("return 1")
        let read = Self.command
        let digest = login.command("EVALSHA", [[1]], [], expecting: .anything)
        let source = login.command("EVAL", [[1]], [], expecting: .anything)
        #expect(digest.kind == source.kind && digest.kind != read.kind)
        var failures = CommandFailures()
        var change = failures.ended(source.kind, error, at: time(0))
        #expect(isNew(change) && failures.failure?.code == error.code)
        // Others succeed meanwhile, and the same again is no news.
        change = failures.ended(read.kind, nil, at: time(1))
        #expect(change == nil && failures.failure != nil)
        change = failures.ended(source.kind, error, at: time(2))
        #expect(change == nil)
        change = failures.ended(digest.kind, nil, at: time(3))
        // A node of a cluster may have the next key.
        #expect(isOver(change) == (kind != "MOVED") && (failures.failure == nil) == (kind != "MOVED"))
    }

    @Test func `what was wrong is over for rare commands too, except for rights, which each needs`() {
        for (kind, isOver) in [("OOM", true), ("NOPERM", false)] {
            let error = RedisErrorReply.storeError(kind)
            let rare = RedisCommand([Array("DEL".utf8)], key: nil)
            var failures = CommandFailures()
            _ = failures.ended(rare.kind, error, at: time(0))
            _ = failures.ended(Self.command.kind, error, at: time(20_000))
            _ = failures.ended(Self.command.kind, nil, at: time(20_001))
            #expect((failures.failure == nil) == isOver)
        }
    }

    @Test func `a connection that is accepted ends what prevented one, and a new master what its node lacked`() {
        for (kind, endsConnected, endsMoved) in [
            ("LOADING", true, false), ("MAXCLIENTS", true, false), ("READONLY", false, true), ("OOM", false, false),
        ] {
            var failures = CommandFailures()
            _ = failures.ended(Self.command.kind, RedisErrorReply.storeError(kind), at: time(0))
            var change = failures.connected(at: time(1))
            #expect(isOver(change) == endsConnected && (failures.failure == nil) == endsConnected)
            change = failures.moved(at: time(2))
            #expect(isOver(change) == endsMoved, "\(kind)")
        }
    }

    @Test func `a policy by which sessions are evicted is read`() {
        func policy(_ text: String) -> EvictionPolicy? { EvictionPolicy(.bytes(Array(text.utf8))) }
        let text = "# Memory\r\nused_memory:1\r\nmaxmemory_policy:allkeys-lru\r\nx:y\r\n"
        #expect(policy(text)?.warning.contains("allkeys-lru") == true)
        #expect(policy(text.replacing("allkeys-lru", with: "noeviction")) == nil)
        #expect(policy("used_memory:1\r\n") == nil && EvictionPolicy(.error(kind: "NOPERM")) == nil)
    }
}
