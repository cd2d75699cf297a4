import MartletCore
import Testing

@testable import MartletRedis

/// A node by its number.
func node(_ number: UInt16) -> RedisURL.Address { .tcp(host: "10.0.0.1", port: number) }

/// A reply to `CLUSTER SLOTS`.
func slots(_ ranges: [(ClosedRange<Int64>, UInt16)]) -> RedisReply {
    .array(
        ranges.map { range, port in
            .array([
                .integer(range.lowerBound), .integer(range.upperBound),
                .array([.bytes(Array("10.0.0.1".utf8)), .integer(Int64(port)), .bytes(Array("id".utf8))]),
            ])
        })
}

func time(_ milliseconds: Int) -> MonotonicTime { MonotonicTime(nanoseconds: Int64(milliseconds) * 1_000_000) }

@Suite struct ClusterTopologyTests {
    private static let third: [(ClosedRange<Int64>, UInt16)] = [
        (0...5460, 1), (5461...10_922, 2), (10_923...16_383, 3),
    ]

    private func asked(_ actions: [TopologyAction]) -> Set<RedisURL.Address> {
        Set(actions.compactMap { if case .ask(.slots, let node) = $0 { node } else { nil } })
    }

    /// A topology with a map of three masters, all connected.
    private func connected() -> ClusterTopology {
        var topology = ClusterTopology(seeds: [node(1)])
        #expect(topology.start(at: time(0)) == [.open(node(1))])
        #expect(asked(topology.nodeReady(node(1), at: time(1))) == [node(1)])
        let actions = topology.answered(.slots, by: node(1), slots(Self.third), at: time(2))
        #expect(actions.contains(.open(node(2))) && actions.contains(.open(node(3))))
        _ = topology.nodeReady(node(2), at: time(3))
        _ = topology.nodeReady(node(3), at: time(3))
        return topology
    }

    @Test func `learns the map from a seed`() {
        let topology = connected()
        #expect(topology.node(of: HashSlot(0)) == node(1) && topology.node(of: HashSlot(16_383)) == node(3))
        #expect(Set(topology.masters) == [node(1), node(2), node(3)])
        #expect(topology.node(of: nil) != nil)
    }

    @Test func `knows no node before there is a map`() {
        var topology = ClusterTopology(seeds: [node(1)])
        _ = topology.start(at: time(0))
        #expect(topology.node(of: HashSlot(1)) == nil && topology.node(of: nil) == nil)
    }

    @Test func `a slot that was redirected has moved when the next map says so`() {
        var topology = connected()
        let asked = asked(topology.moved(HashSlot(7), to: node(2), at: time(2000)))
        #expect(!asked.isEmpty && topology.node(of: HashSlot(7)) == node(2))
        var moved: [SlotSet] = []
        for one in asked {
            let reply = slots([(0...10_922, 2), (10_923...16_383, 3)])
            for case .moved(let slots?) in topology.answered(.slots, by: one, reply, at: time(2001)) {
                moved.append(slots)
            }
        }
        #expect(moved.map(\.count) == [5461] && moved[0].contains(HashSlot(7)))
    }

    @Test func `asks again at most every second`() {
        var topology = connected()
        // The first round after the map finds all nodes connected.
        #expect(asked(topology.tick(at: time(1002))).count == 3)
        for number: UInt16 in 1...3 {
            _ = topology.answered(.slots, by: node(number), slots(Self.third), at: time(1003))
        }
        var rounds = 0
        for instant in stride(from: 1010, through: 5009, by: 10) {
            let actions = topology.moved(HashSlot(7), to: node(2), at: time(instant))
            if !asked(actions).isEmpty {
                rounds += 1
                for node in asked(actions) {
                    _ = topology.answered(.slots, by: node, slots(Self.third), at: time(instant))
                }
            }
        }
        #expect((3...4).contains(rounds))
    }

    @Test func `asks every 10 s without a reason`() {
        var topology = connected()
        _ = topology.tick(at: time(1002))
        for number: UInt16 in 1...3 {
            _ = topology.answered(.slots, by: node(number), slots(Self.third), at: time(1003))
        }
        #expect(topology.nextTick == time(11_002))
        #expect(asked(topology.tick(at: time(11_001))).isEmpty)
        #expect(asked(topology.tick(at: time(11_002))).count == 3)
    }

    @Test func `believes what most nodes say`() {
        var topology = connected()
        let asked = asked(topology.tick(at: time(1002)))
        #expect(asked.count == 3)
        let promoted: [(ClosedRange<Int64>, UInt16)] = [(0...5460, 4), (5461...10_922, 2), (10_923...16_383, 3)]
        // The old master has come back and does not know yet.
        _ = topology.answered(.slots, by: node(1), slots(Self.third), at: time(1003))
        _ = topology.answered(.slots, by: node(2), slots(promoted), at: time(1004))
        let actions = topology.answered(.slots, by: node(3), slots(promoted), at: time(1005))
        #expect(topology.node(of: HashSlot(1)) == node(4))
        #expect(actions.contains(.open(node(4))))
        #expect(actions.contains { if case .moved(let slots?) = $0 { slots.count == 5461 } else { false } })
    }

    @Test func `decides without a node that does not reply`() {
        var topology = connected()
        _ = topology.tick(at: time(1002))
        _ = topology.answered(.slots, by: node(2), slots([(0...16_383, 2)]), at: time(1003))
        #expect(topology.node(of: HashSlot(0)) == node(1))
        #expect(topology.nextTick == time(1302))
        _ = topology.tick(at: time(1302))
        #expect(topology.node(of: HashSlot(0)) == node(2))
        // Late replies change nothing.
        _ = topology.answered(.slots, by: node(1), slots(Self.third), at: time(1303))
        #expect(topology.node(of: HashSlot(0)) == node(2))
    }

    @Test func `closes nodes that have no slots in two maps`() {
        var topology = connected()
        var closed: [[TopologyAction]] = []
        for instant in [1002, 2002, 3002] {
            for node in asked(topology.tick(at: time(instant))) {
                let actions = topology.answered(.slots, by: node, slots([(0...16_383, 1)]), at: time(instant + 1))
                closed.append(actions.filter { if case .close = $0 { true } else { false } })
            }
            _ = topology.suspect(at: time(instant + 2))
        }
        #expect(Set(closed.flatMap { $0 }.map { "\($0)" }).count == 2)
        #expect(topology.masters == [node(1)])
    }

    @Test func `connects to the seeds again when all nodes are lost`() {
        var topology = connected()
        _ = topology.nodeDown(node(1), at: time(10))
        _ = topology.nodeDown(node(2), at: time(10))
        _ = topology.nodeDown(node(3), at: time(10))
        #expect(topology.nextTick == nil || topology.nextTick.map { $0 <= time(400) } == true)
        #expect(!asked(topology.nodeReady(node(2), at: time(2000))).isEmpty)
    }

    @Test(
        arguments: [
            RedisReply.nothing, .integer(1), .array([]), .array([.integer(1)]), .error(kind: "ERR"),
            slots([(5...16_384, 1)]), slots([(-1...2, 1)]), slots([(0...5, 0)]),
            .array([.array([.integer(0), .integer(1), .array([.bytes(Array("a b".utf8)), .integer(1)])])]),
            .array([.array([.integer(9), .integer(1), .array([.bytes(Array("a".utf8)), .integer(1)])])]),
        ])
    func `keeps its map when the reply is nonsense`(reply: RedisReply) {
        var topology = connected()
        for node in asked(topology.tick(at: time(1002))) {
            _ = topology.answered(.slots, by: node, reply, at: time(1003))
        }
        #expect(topology.node(of: HashSlot(0)) == node(1) && topology.masters.count == 3)
    }

    @Test func `does not grow with what nodes claim`() {
        var topology = connected()
        for number in 0..<5000 {
            let claimed = RedisURL.Address.tcp(host: "h\(number)", port: 1)
            _ = topology.moved(HashSlot(UInt16(number % 16_384)), to: claimed, at: time(2000 + number))
        }
        var map = SlotMap()
        for number in 0..<5000 { map.assign(HashSlot(0), to: .tcp(host: "h\(number)", port: 1)) }
        #expect(topology.masters.count <= SlotMap.maximumNodes)
        let isAssigned = map.assign(HashSlot(0), to: .tcp(host: "another", port: 1))
        #expect(!isAssigned)
    }
}
