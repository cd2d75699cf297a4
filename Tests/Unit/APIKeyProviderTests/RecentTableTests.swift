import MartletTesting
import Testing

@testable import APIKeyProvider

@Suite struct `A table of recent values` {
    @Test func `drops what was used least recently`() {
        var table = RecentTable<Int>(capacity: 3)
        for (value, key) in ["a", "b", "c"].enumerated() { table.set(value, for: key) }
        #expect(table.value(for: "a") == 0)
        table.set(3, for: "d")
        #expect(table.value(for: "b") == nil && table.count == 3)
        table.set(9, for: "c")
        table.set(4, for: "e")
        #expect(table.value(for: "a") == nil && table.value(for: "c") == 9 && table.value(for: "d") == 3)
    }

    @Test func `does not count a look as a use`() {
        var table = RecentTable<Int>(capacity: 2)
        table.set(0, for: "a")
        table.set(1, for: "b")
        #expect(table.contains("a"))
        table.set(2, for: "c")
        #expect(!table.contains("a") && table.contains("b"))
    }

    @Test func `behaves like a list, whatever is done`() {
        var random = SeededGenerator(seed: 7)
        for capacity in [1, 2, 5] {
            var table = RecentTable<Int>(capacity: capacity)
            var model: [(key: String, value: Int)] = []
            for step in 0..<4000 {
                let key = "\(Int.random(in: 0..<8, using: &random))"
                let index = model.firstIndex { $0.key == key }
                switch Int.random(in: 0..<20, using: &random) {
                case 0:
                    table.removeAll()
                    model = []
                case 1..<5:
                    table.remove(key)
                    if let index { model.remove(at: index) }
                case 5..<12:
                    #expect(table.value(for: key) == index.map { model[$0].value })
                    if let index { model.append(model.remove(at: index)) }
                default:
                    table.set(step, for: key)
                    if let index { model.remove(at: index) } else if model.count == capacity { model.removeFirst() }
                    model.append((key, step))
                }
                #expect(table.count == model.count && model.allSatisfy { table.contains($0.key) })
            }
        }
    }
}
