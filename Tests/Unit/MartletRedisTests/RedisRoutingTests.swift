import MartletCore
import Testing

@testable import MartletRedis

@Suite struct RedisRoutingTests {
    /// One master with all slots, connected.
    private func connected() -> RedisRouting {
        var routing = RedisRouting(ClusterTopology(seeds: [node(1)]))
        _ = routing.start(at: time(0))
        _ = routing.nodeReady(node(1), at: time(1))
        _ = routing.answered(.slots, by: node(1), slots([(0...16_383, 1)]), at: time(2))
        return routing
    }

    private func ask(_ port: UInt16) -> RedisRouting.Outcome {
        .redirected(RedisRedirect(isTemporary: true, slot: 7, host: "10.0.0.1", port: port))
    }

    private func request(_ traits: RedisCommandTraits, at now: Int) -> RedisRouting.Request {
        .init(slot: HashSlot(7), deadline: time(now + 500), traits: traits)
    }

    private func sent(_ actions: [RedisRouting.Action]) -> [RedisURL.Address] {
        actions.compactMap { if case .send(_, let node, _) = $0 { node } else { nil } }
    }

    private func opened(_ actions: [RedisRouting.Action]) -> [RedisURL.Address] {
        actions.compactMap { if case .topology(.open(let node)) = $0 { node } else { nil } }
    }

    @Test func `a command with one key follows ASK, one with several waits`() {
        var routing = connected()
        #expect(sent(routing.submit(1, request(.isRepeatable, at: 10), at: time(10))) == [node(1)])
        #expect(opened(routing.ended(1, ask(2), at: time(11))) == [node(2)])
        #expect(sent(routing.submit(2, request(.hasManyKeys, at: 10), at: time(10))) == [node(1)])
        #expect(routing.ended(2, ask(2), at: time(11)).isEmpty)
        #expect(sent(routing.tick(at: time(20))) == [node(1)])
    }

    /// Has the node that is asked for the map give it again.
    private func remap(
        _ routing: inout RedisRouting, at now: Int, _ ranges: [(ClosedRange<Int64>, UInt16)]
    ) -> [RedisRouting.Action] {
        var actions = routing.suspect(at: time(now)) + routing.tick(at: time(now))
        for case .topology(.ask(.slots, let node)) in actions {
            actions += routing.answered(.slots, by: node, slots(ranges), at: time(now))
        }
        return actions
    }

    private func closed(_ actions: [RedisRouting.Action]) -> [RedisURL.Address] {
        actions.compactMap { if case .topology(.close(let node)) = $0 { node } else { nil } }
    }

    private func asked(_ actions: [RedisRouting.Action]) -> [RedisURL.Address] {
        actions.compactMap { if case .topology(.ask(_, let node)) = $0 { node } else { nil } }
    }

    /// A command is redirected to a node, which replies.
    private func detour(_ ticket: UInt64, to port: UInt16, at now: Int, _ routing: inout RedisRouting) {
        _ = routing.submit(ticket, request([], at: now), at: time(now))
        _ = routing.ended(ticket, ask(port), at: time(now))
        for action in routing.nodeReady(node(port), at: time(now)) {
            guard case .send(ticket, let target, _) = action else { continue }
            // It starts over, and is redirected to a node that is connected now.
            _ = routing.ended(ticket, target == node(port) ? .reply : ask(port), at: time(now))
        }
        _ = routing.ended(ticket, .reply, at: time(now))
    }

    @Test func `few nodes are kept that only ASK names`() {
        var routing = connected()
        var opened = 0
        for number: UInt16 in 0..<100 {
            let ticket = UInt64(number)
            _ = routing.submit(ticket, request([], at: 10), at: time(10))
            opened += self.opened(routing.ended(ticket, ask(1000 + number), at: time(10))).count
        }
        #expect(opened == AskedNodes.maximum && routing.nodeCount == 1 + AskedNodes.maximum)
        // Commands wait for these, so none makes room; the others have failed.
        #expect(routing.count == AskedNodes.maximum)
        _ = routing.tick(at: time(1000))
        #expect(routing.count == 0)
        // Idle now: the least recently used one makes room.
        _ = routing.submit(200, request([], at: 2000), at: time(2000))
        let actions = routing.ended(200, ask(2000), at: time(2000))
        #expect(self.opened(actions) == [node(2000)] && closed(actions).count == 1)
        #expect(routing.nodeCount == 1 + AskedNodes.maximum)
    }

    @Test func `nodes that only ASK names are closed after a minute`() {
        var routing = connected()
        detour(1, to: 2, at: 10, &routing)
        detour(2, to: 2, at: 30_000, &routing)
        #expect(closed(routing.tick(at: time(60_011))).isEmpty)
        #expect(closed(routing.tick(at: time(90_000))) == [node(2)])
        #expect(routing.nodeCount == 1)
    }

    @Test func `nodes that only ASK names are closed when a later map does not list them`() {
        var routing = connected()
        detour(1, to: 2, at: 2000, &routing)
        #expect(closed(remap(&routing, at: 3000, [(0...16_383, 1)])).isEmpty)
        #expect(closed(remap(&routing, at: 8000, [(0...16_383, 1)])) == [node(2)])
        // One that the map lists stays, and is asked for the map from then on.
        detour(2, to: 3, at: 9000, &routing)
        let actions = remap(&routing, at: 20_000, [(0...8191, 1), (8192...16_383, 3)])
        #expect(closed(actions).isEmpty && opened(actions).isEmpty)
        #expect(Set(asked(remap(&routing, at: 31_000, [(0...8191, 1), (8192...16_383, 3)]))) == [node(1), node(3)])
        #expect(closed(routing.tick(at: time(100_000))).isEmpty && routing.isReady(node(3)))
    }

    @Test func `nodes that only ASK names are not asked for the map, and do not hide an outage`() {
        var routing = connected()
        detour(1, to: 2, at: 2000, &routing)
        #expect(asked(remap(&routing, at: 3000, [(0...16_383, 1)])) == [node(1)])
        #expect(!routing.isCutOff)
        _ = routing.nodeDown(node(1), .connectionLost, at: time(3100))
        #expect(routing.isCutOff && !routing.isAvailable)
        #expect(routing.failure(of: node(1))?.code == .redisConnectionLost && routing.known == [node(1)])
    }
}
