import MartletCore
import Testing

@testable import MartletRedis

@Suite struct SentinelListTests {
    private let seeds = [node(1), node(2), node(3)]

    private func nodes(_ numbers: some Sequence<UInt16>) -> [RedisURL.Address] { numbers.map { node($0) } }

    @Test func `adds what most lists have`() {
        var list = SentinelList(seeds: seeds)
        #expect(list.answered(nodes([2, 3, 4]), by: node(1)).added == [node(4)])
        // One of two is not most; nor is a sentinel removed while half of the lists have it.
        var changes = list.answered(nodes([1, 3, 5]), by: node(2))
        #expect(changes.added.isEmpty && changes.removed.isEmpty)
        changes = list.answered(nodes([1, 2, 5]), by: node(3))
        #expect(changes.added == [node(5)] && changes.removed == [node(4)])
        #expect(list.known == Set(nodes([1, 2, 3, 5])))
    }

    @Test func `a sentinel that adds itself is removed`() {
        var list = SentinelList(seeds: seeds)
        _ = list.answered(nodes([2, 4]), by: node(1))
        _ = list.answered(nodes([1, 2, 3]), by: node(4))
        _ = list.answered(nodes([1, 3]), by: node(2))
        #expect(list.answered(nodes([1, 2]), by: node(3)).removed.isEmpty)
        #expect(list.answered(nodes([2, 3]), by: node(1)).removed == [node(4)])
        #expect(list.answered(nodes([1, 2, 3]), by: node(4)).added.isEmpty)
    }

    @Test func `seeds stay, and lists of sentinels that are lost do not count`() {
        var list = SentinelList(seeds: seeds)
        _ = list.answered(nodes([4]), by: node(1))
        _ = list.answered([], by: node(2))
        list.lost(node(2))
        #expect(list.answered([], by: node(3)).removed.isEmpty)
        list.lost(node(1))
        #expect(list.answered([], by: node(3)).removed == [node(4)])
        #expect(list.known == Set(seeds))
    }

    @Test func `is bounded with the seeds`() {
        let seeds = nodes(1...16)
        var list = SentinelList(seeds: seeds)
        var opened = 0
        for round in 0..<100 {
            let first = UInt16(1000 + round * 16)
            for seed in seeds {
                let changes = list.answered(nodes(first..<(first + 16)), by: seed)
                opened += changes.added.count
                #expect(list.known.count <= SentinelList.maximum)
                #expect(list.known.isSuperset(of: seeds))
            }
        }
        #expect(opened > 16)
        #expect(list.answered(nodes(1...17), by: node(1)).added.isEmpty)
    }
}
