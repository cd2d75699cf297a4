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
}
