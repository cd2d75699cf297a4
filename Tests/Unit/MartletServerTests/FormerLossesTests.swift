import Testing

@testable import MartletServer

@Suite struct `Losses of log files that were closed` {
    private func texts(_ files: [(file: String, lines: Int)]) -> [String] { files.map { "\($0.file) \($0.lines)" } }

    @Test func `are added up, with those of the same file while it is open`() {
        var losses = FormerLosses()
        losses.add(3, of: "b")
        losses.add(0, of: "c")
        losses.add(2, of: "a")
        losses.add(4, of: "b")
        #expect(texts(losses.total(with: [])) == ["a 2", "b 7"])
        #expect(texts(losses.total(with: [("b", 1), ("c", 0), ("b", 2)])) == ["a 2", "b 10", "c 0"])
    }

    @Test func `are known of so many files`() {
        var losses = FormerLosses()
        for number in 0..<FormerLosses.limit { losses.add(1, of: "f\(number)") }
        losses.add(1, of: "f0")
        losses.add(1, of: "new")
        #expect(losses.files.count == FormerLosses.limit)
        #expect(losses.files.contains { $0.file == "f0" && $0.lines == 2 })
        #expect(!losses.files.contains { $0.file == "f1" })
    }
}
