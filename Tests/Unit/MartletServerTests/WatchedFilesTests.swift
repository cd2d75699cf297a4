import MartletConfig
import Testing

@testable import MartletServer

@Suite struct `Watched files` {
    private static func fingerprints(_ first: Int64, _ second: Int64) -> [FilePath: FileFingerprint] {
        [FilePath("/a"): FileFingerprint(numbers: [first]), FilePath("/b"): FileFingerprint(numbers: [second])]
    }

    private func poll(
        _ files: inout WatchedFiles, _ fingerprints: [FilePath: FileFingerprint], _ isRead: Bool,
        at location: Testing.SourceLocation = #_sourceLocation
    ) {
        let found = files.poll(fingerprints)
        #expect(found == isRead, sourceLocation: location)
    }

    @Test func `are read again once they have changed and stopped changing`() {
        var files = WatchedFiles(Self.fingerprints(1, 1))
        poll(&files, Self.fingerprints(1, 1), false)
        poll(&files, Self.fingerprints(2, 1), false)
        poll(&files, Self.fingerprints(2, 2), false)
        poll(&files, Self.fingerprints(2, 2), true)
        poll(&files, Self.fingerprints(2, 2), false)
    }

    @Test func `are read again for the second file of a pair, too`() {
        var files = WatchedFiles(Self.fingerprints(1, 1))
        let cases: [(Int64, Int64, Bool)] = [(2, 1, false), (2, 1, true), (2, 2, false), (2, 2, true)]
        for (first, second, isRead) in cases {
            let found = files.poll(Self.fingerprints(first, second))
            #expect(found == isRead)
        }
    }

    @Test func `are not read again after a reload that has read them`() {
        var files = WatchedFiles(Self.fingerprints(1, 1))
        files.reset(Self.fingerprints(2, 2))
        poll(&files, Self.fingerprints(2, 2), false)
        poll(&files, [FilePath("/c"): FileFingerprint(numbers: [])], false)
        poll(&files, [FilePath("/c"): FileFingerprint(numbers: [])], false)
    }
}
