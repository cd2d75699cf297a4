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

    @Test func `commands fail when several in a row have failed over a second`() {
        var series = CommandSeries()
        func isNew(_ change: CommandSeries.Change?) -> Bool { if case .failing = change { true } else { false } }
        func isOver(_ change: CommandSeries.Change?) -> Bool { if case .succeeding = change { true } else { false } }
        for _ in 0..<20 { #expect(series.ended(.tooManyRedirects, at: time(0)) == nil) }
        #expect(series.failure == nil)
        #expect(isNew(series.ended(.tooManyRedirects, at: time(1000))))
        #expect(series.failure?.code == .redisTooManyRedirects)
        #expect(series.ended(.timeout, at: time(1001)) == nil && series.failure?.code == .redisTimeout)
        #expect(series.ended(.overloaded, at: time(1002)) == nil && series.failure?.code == .redisTimeout)
        #expect(isOver(series.ended(nil, at: time(1003))) && series.failure == nil)
        #expect(series.ended(nil, at: time(1004)) == nil)
        for instant in 0..<4 { #expect(series.ended(.timeout, at: time(2000 + instant * 1000)) == nil) }
        #expect(series.ended(nil, at: time(9000)) == nil)
        for _ in 0..<9 { #expect(series.ended(.overloaded, at: time(20_000)) == nil) }
        #expect(series.failure == nil)
    }
}
