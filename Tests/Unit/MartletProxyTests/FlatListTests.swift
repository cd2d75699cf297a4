import Testing

@testable import MartletProxy

@Suite struct FlatListTests {
    private final class Counted {
        nonisolated(unsafe) static var alive = 0
        init() { unsafe Self.alive += 1 }
        deinit { unsafe Self.alive -= 1 }
    }

    @Test func `elements keep their indices while the list grows`() {
        var list = FlatList<[Int]>(capacity: 1)
        for number in 0..<200 {
            list.append([number])
            list[number / 2].append(number)
        }
        let count = list.count
        #expect(count == 200)
        for index in list.indices {
            let element = list[index]
            #expect(element.first == index)
            #expect(element.dropFirst().allSatisfy { $0 / 2 == index })
        }
    }

    @Test func `elements are released with the list`() {
        do {
            var list = FlatList<Counted>()
            for _ in 0..<50 { list.append(Counted()) }
            list[7] = Counted()
            #expect(unsafe Counted.alive == 50)
        }
        #expect(unsafe Counted.alive == 0)
    }

    @Test func `slots of a slab are reused, and stale generations are recognized`() {
        struct Element: SlabElement {
            var generation: UInt32 = 0
            var isAlive = false
        }
        var slab = Slab<Element>(capacity: 2)
        let first = (0..<9).map { _ in slab.allocate() }
        #expect(first == Array(0..<9))
        for index in first { slab.free(index) }
        slab.free(3)
        let empty = slab.count
        #expect(empty == 0)
        let stale = slab.contains(3, 0)
        #expect(!stale)
        let second = (0..<12).map { _ in slab.allocate() }
        #expect(second == Array((0..<9).reversed()) + [9, 10, 11])
        let (held, end) = (slab.contains(3, 1), slab.end)
        #expect(held && end == 12)
    }
}
