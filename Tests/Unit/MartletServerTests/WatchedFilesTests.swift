import MartletConfig
import Testing

@testable import MartletServer

@Suite struct `Watched files` {
    private static func marks(_ first: Int64, _ second: Int64) -> [FilePath: FileMark] {
        [FilePath("/a"): FileMark(numbers: [first]), FilePath("/b"): FileMark(numbers: [second])]
    }

    private func look(
        _ files: inout WatchedFiles, _ marks: [FilePath: FileMark], _ isRead: Bool,
        at location: Testing.SourceLocation = #_sourceLocation
    ) {
        let found = files.look(marks)
        #expect(found == isRead, sourceLocation: location)
    }

    @Test func `are read again once they have changed and stand still`() {
        var files = WatchedFiles(Self.marks(1, 1))
        look(&files, Self.marks(1, 1), false)
        look(&files, Self.marks(2, 1), false)
        look(&files, Self.marks(2, 2), false)
        look(&files, Self.marks(2, 2), true)
        look(&files, Self.marks(2, 2), false)
    }

    @Test func `are read again for the other half of a pair, too`() {
        var files = WatchedFiles(Self.marks(1, 1))
        let cases: [(Int64, Int64, Bool)] = [(2, 1, false), (2, 1, true), (2, 2, false), (2, 2, true)]
        for (first, second, isRead) in cases {
            let found = files.look(Self.marks(first, second))
            #expect(found == isRead)
        }
    }

    @Test func `are not read again after a reload that has read them`() {
        var files = WatchedFiles(Self.marks(1, 1))
        files.settle(Self.marks(2, 2))
        look(&files, Self.marks(2, 2), false)
        look(&files, [FilePath("/c"): FileMark(numbers: [])], false)
        look(&files, [FilePath("/c"): FileMark(numbers: [])], false)
    }
}
