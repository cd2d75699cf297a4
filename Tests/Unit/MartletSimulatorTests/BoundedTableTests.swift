import Testing

@testable import MartletSimulator

@Suite struct `Bounded table` {
    @Test func `the oldest values are dropped`() {
        var table = BoundedTable<Int>(capacity: 3)
        for number in 0..<10 { table.insert(number, as: "\(number)") }
        for number in 0..<7 { #expect(table["\(number)"] == nil) }
        for number in 7..<10 { #expect(table["\(number)"] == number) }
    }

    @Test func `replacing a value keeps its age`() {
        var table = BoundedTable<Int>(capacity: 2)
        table.insert(1, as: "a")
        table.insert(2, as: "b")
        table.insert(3, as: "a")
        #expect(table["a"] == 3 && table["b"] == 2)
        table.insert(4, as: "c")
        #expect(table["a"] == nil && table["b"] == 2 && table["c"] == 4)
        table.update("b") { $0 += 1 }
        table.update("a") { $0 += 1 }
        #expect(table["b"] == 3 && table["a"] == nil)
    }
}
