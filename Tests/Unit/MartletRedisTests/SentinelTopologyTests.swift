import MartletCore
import Testing

@testable import MartletRedis

@Suite struct SentinelTopologyTests {
    private let seeds = [node(101), node(102), node(103)]

    private func fields(_ pairs: [(String, String)]) -> RedisReply {
        .array(pairs.flatMap { [.bytes(Array($0.0.utf8)), .bytes(Array($0.1.utf8))] })
    }

    private func master(_ number: UInt16, epoch: Int) -> RedisReply {
        fields([
            ("name", "mymaster"), ("ip", "10.0.0.1"), ("port", "\(number)"), ("flags", "master"),
            ("config-epoch", "\(epoch)"),
        ])
    }

    private func connected() -> SentinelTopology {
        var topology = SentinelTopology(sentinels: seeds)
        #expect(topology.start(at: time(0)) == seeds.map { .openSentinel($0) })
        for seed in seeds {
            #expect(topology.sentinelReady(seed, at: time(1)) == [.ask(.master, seed), .ask(.sentinels, seed)])
        }
        return topology
    }

    @Test func `connects to the master that the first sentinel names`() {
        var topology = connected()
        #expect(topology.node(of: nil) == nil)
        #expect(
            topology.answered(.master, by: seeds[1], master(7, epoch: 3), at: time(2)) == [.open(node(7)), .moved(nil)])
        #expect(topology.node(of: HashSlot(1)) == node(7))
        #expect(topology.answered(.master, by: seeds[0], master(7, epoch: 3), at: time(3)).isEmpty)
    }

    @Test func `follows the highest epoch, and never an older one`() {
        var topology = connected()
        for seed in seeds { _ = topology.answered(.master, by: seed, master(7, epoch: 3), at: time(2)) }
        #expect(
            topology.answered(.master, by: seeds[2], master(8, epoch: 4), at: time(3))
                == [.close(node(7)), .open(node(8)), .moved(nil)])
        // Sentinels that have not heard of it.
        #expect(topology.answered(.master, by: seeds[0], master(7, epoch: 3), at: time(4)).isEmpty)
        #expect(topology.answered(.master, by: seeds[2], master(7, epoch: 3), at: time(5)).isEmpty)
        #expect(topology.node(of: nil) == node(8))
    }

    @Test func `follows most sentinels within an epoch`() {
        var topology = connected()
        _ = topology.answered(.master, by: seeds[0], master(7, epoch: 1), at: time(2))
        #expect(topology.answered(.master, by: seeds[1], master(8, epoch: 1), at: time(3)).isEmpty)
        _ = topology.answered(.master, by: seeds[2], master(8, epoch: 1), at: time(4))
        #expect(topology.node(of: nil) == node(8))
    }

    @Test func `asks every second, and when one announces another master`() {
        var topology = connected()
        #expect(topology.nextTick == time(1000))
        #expect(topology.tick(at: time(999)).isEmpty)
        #expect(topology.tick(at: time(1000)) == seeds.map { .ask(.master, $0) })
        #expect(topology.nextTick == time(2000))
        #expect(topology.suspect(at: time(1500)).count == 3)
        #expect(topology.nextTick == time(2500))
        topology.sentinelDown(seeds[0])
        #expect(topology.tick(at: time(2500)).count == 2)
    }

    @Test func `adds the sentinels that others know, up to a bound`() {
        var topology = connected()
        let more = RedisReply.array([
            fields([("ip", "10.0.0.1"), ("port", "104")]), fields([("ip", "10.0.0.1"), ("port", "102")]),
        ])
        #expect(topology.answered(.sentinels, by: seeds[0], more, at: time(2)) == [.openSentinel(node(104))])
        let flood = RedisReply.array((1...1000).map { fields([("ip", "10.0.0.1"), ("port", "\($0)")]) })
        #expect(topology.answered(.sentinels, by: seeds[0], flood, at: time(3)).isEmpty)
    }

    /// Asks all seeds every second, and has them reply.
    private func rounds(
        _ topology: inout SentinelTopology, from start: Int, to end: Int,
        _ replies: [RedisReply]
    ) -> [TopologyAction] {
        var actions: [TopologyAction] = []
        for instant in stride(from: start, through: end, by: 1000) {
            for (seed, reply) in zip(seeds, replies) {
                actions += topology.answered(.master, by: seed, reply, at: time(instant))
            }
        }
        return actions.filter { if case .ask = $0 { false } else { true } }
    }

    /// Connected to a master that all sentinels name.
    private func agreed(epoch: Int) -> SentinelTopology {
        var topology = connected()
        let replies = [RedisReply](repeating: master(7, epoch: epoch), count: 3)
        #expect(rounds(&topology, from: 2, to: 2, replies) == [.open(node(7)), .moved(nil)])
        #expect(topology.nodeReady(node(7), at: time(3)).isEmpty)
        return topology
    }

    @Test func `follows an older epoch that a majority agrees on for 3 s, once its master is one`() {
        var topology = agreed(epoch: 1)
        // Set up anew by an operator, and the third one stopped.
        let anew = [RedisReply](repeating: master(8, epoch: 0), count: 2)
        #expect(rounds(&topology, from: 10_000, to: 12_000, anew).isEmpty)
        #expect(rounds(&topology, from: 13_000, to: 15_000, anew) == [.open(node(8))])
        #expect(topology.node(of: nil) == node(7))
        #expect(topology.nodeDown(node(8), at: time(15_010)).isEmpty)
        #expect(
            topology.nodeReady(node(8), at: time(15_020))
                == [.epochLowered(from: 1, to: 0), .close(node(7)), .moved(nil)])
        #expect(topology.masters == [node(8)])
        // From there on as ever.
        #expect(
            topology.answered(.master, by: seeds[0], master(9, epoch: 1), at: time(16_000))
                == [.close(node(8)), .open(node(9)), .moved(nil)])
    }

    @Test func `follows an older epoch of the same master while it is connected`() {
        var topology = agreed(epoch: 5)
        let anew = [RedisReply](repeating: master(7, epoch: 0), count: 3)
        _ = topology.nodeDown(node(7), at: time(9000))
        #expect(rounds(&topology, from: 10_000, to: 14_000, anew).isEmpty)
        _ = topology.nodeReady(node(7), at: time(14_500))
        #expect(rounds(&topology, from: 15_000, to: 16_000, anew) == [.epochLowered(from: 5, to: 0)])
        #expect(topology.node(of: nil) == node(7))
    }

    @Test func `keeps the epoch while those that are behind are no majority, or do not agree for 3 s in a row`() {
        var topology = agreed(epoch: 4)
        let (old, new) = (master(8, epoch: 3), master(7, epoch: 4))
        #expect(rounds(&topology, from: 10_000, to: 20_000, [old, new, new]).isEmpty)
        // One of them has not replied for long: it still counts against them.
        #expect(rounds(&topology, from: 30_000, to: 40_000, [old]).isEmpty)
        #expect(rounds(&topology, from: 50_000, to: 60_000, [old, master(9, epoch: 3)]).isEmpty)
        for start in stride(from: 70_000, through: 90_000, by: 4000) {
            #expect(rounds(&topology, from: start, to: start + 2000, [old, old, new]).isEmpty)
            #expect(rounds(&topology, from: start + 3000, to: start + 3000, [new, new, new]).isEmpty)
        }
        #expect(topology.node(of: nil) == node(7))
    }

    @Test func `gives up an older epoch when the majority falls apart before its master is reached`() {
        var topology = agreed(epoch: 4)
        let (old, new) = (master(8, epoch: 3), master(7, epoch: 4))
        #expect(rounds(&topology, from: 10_000, to: 13_000, [old, old, new]) == [.open(node(8))])
        #expect(rounds(&topology, from: 14_000, to: 14_000, [new, old, new]) == [.close(node(8))])
        #expect(topology.nodeReady(node(8), at: time(14_001)).isEmpty)
        #expect(topology.node(of: nil) == node(7))
    }

    @Test func `one sentinel with a far higher epoch is not followed while the others' master is connected`() {
        var topology = agreed(epoch: 5)
        let (honest, lie) = (master(7, epoch: 5), master(1, epoch: 1 << 62))
        #expect(rounds(&topology, from: 10_000, to: 60_000, [honest, honest, lie]).isEmpty)
        #expect(topology.node(of: nil) == node(7))
        // The failover that follows.
        let next = master(8, epoch: 6)
        #expect(
            rounds(&topology, from: 61_000, to: 62_000, [next, next, lie])
                == [.close(node(7)), .open(node(8)), .moved(nil)])
    }

    @Test func `one sentinel with a far higher epoch is followed when the others' master is lost, not longer`() {
        var topology = agreed(epoch: 5)
        let (honest, lie) = (master(7, epoch: 5), master(1, epoch: 1 << 62))
        _ = topology.nodeDown(node(7), at: time(10_000))
        #expect(rounds(&topology, from: 10_500, to: 11_500, [honest, honest, lie]).isEmpty)
        // The master that it names was never reached, so the others' is tried beside it.
        #expect(
            rounds(&topology, from: 12_500, to: 13_500, [honest, honest, lie])
                == [.close(node(7)), .open(node(1)), .moved(nil), .open(node(7))])
        #expect(
            topology.nodeReady(node(7), at: time(14_000))
                == [.epochLowered(from: 1 << 62, to: 5), .close(node(1)), .moved(nil)])
        #expect(rounds(&topology, from: 14_500, to: 30_500, [honest, honest, lie]).isEmpty)
    }

    @Test func `a lie that is heard first is corrected by the others`() {
        var topology = connected()
        #expect(
            topology.answered(.master, by: seeds[2], master(1, epoch: 1 << 62), at: time(2))
                == [.open(node(1)), .moved(nil)])
        #expect(topology.answered(.master, by: seeds[0], master(7, epoch: 5), at: time(3)).isEmpty)
        #expect(topology.answered(.master, by: seeds[1], master(7, epoch: 5), at: time(4)) == [.open(node(7))])
        #expect(topology.nodeReady(node(7), at: time(5)).contains(.close(node(1))))
        #expect(topology.node(of: nil) == node(7))
    }

    @Test func `a sentinel that a majority has outvoted is not followed again until it agrees with it`() {
        var topology = agreed(epoch: 5)
        let honest = master(7, epoch: 5)
        // Near enough to be a failover that the others have not heard of.
        var actions = rounds(&topology, from: 10_000, to: 14_000, [honest, honest, master(1, epoch: 6)])
        #expect(actions == [.close(node(7)), .open(node(1)), .moved(nil), .open(node(7))])
        #expect(topology.nodeReady(node(7), at: time(14_100)).contains(.epochLowered(from: 6, to: 5)))
        for epoch in 6..<20 {
            let start = 15_000 + epoch * 1000
            #expect(rounds(&topology, from: start, to: start, [honest, honest, master(1, epoch: epoch)]).isEmpty)
        }
        #expect(rounds(&topology, from: 40_000, to: 40_000, [honest, honest, honest]).isEmpty)
        actions = rounds(&topology, from: 41_000, to: 41_000, [honest, honest, master(8, epoch: 6)])
        #expect(actions == [.close(node(7)), .open(node(8)), .moved(nil)])
    }

    @Test func `asks at most ten times a second, whatever is announced`() {
        var topology = connected()
        var questions = 0
        for instant in 1000..<2000 { questions += topology.suspect(at: time(instant)).count }
        #expect(questions == 30)
        #expect(topology.nextTick == time(2000))
        #expect(topology.tick(at: time(2000)).count == 3)
    }

    @Test func `forgets what a sentinel said that is removed`() {
        var topology = agreed(epoch: 5)
        let others = { (ports: [Int]) -> RedisReply in
            .array(ports.map { self.fields([("ip", "10.0.0.1"), ("port", "\($0)")]) })
        }
        #expect(topology.answered(.sentinels, by: seeds[0], others([104]), at: time(10)) == [.openSentinel(node(104))])
        _ = topology.sentinelReady(node(104), at: time(11))
        #expect(topology.tick(at: time(1000)).contains(.ask(.master, node(104))))
        #expect(topology.answered(.sentinels, by: seeds[1], others([]), at: time(1010)).isEmpty)
        #expect(topology.answered(.sentinels, by: seeds[2], others([]), at: time(1020)) == [.closeSentinel(node(104))])
        #expect(topology.answered(.master, by: node(104), master(9, epoch: 9), at: time(1030)).isEmpty)
        #expect(!topology.tick(at: time(2000)).contains(.ask(.master, node(104))))
    }

    @Test func `ignores nonsense and strangers`() {
        var topology = connected()
        let replies: [RedisReply] = [
            .nothing, .integer(1), .error(kind: "ERR"), .array([.integer(1)]), master(0, epoch: 1),
            fields([("ip", "a b"), ("port", "1"), ("config-epoch", "1")]), fields([("ip", "a"), ("port", "1")]),
            fields([("ip", "a"), ("port", "1"), ("config-epoch", "-1")]),
            fields([("ip", ""), ("port", "1"), ("config-epoch", "1")]),
        ]
        for reply in replies { #expect(topology.answered(.master, by: seeds[0], reply, at: time(2)).isEmpty) }
        #expect(topology.answered(.master, by: node(9), master(7, epoch: 9), at: time(2)).isEmpty)
        #expect(topology.answered(.master, by: seeds[0], nil, at: time(2)).isEmpty)
        #expect(topology.node(of: nil) == nil)
    }
}
