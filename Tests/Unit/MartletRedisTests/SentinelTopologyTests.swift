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
