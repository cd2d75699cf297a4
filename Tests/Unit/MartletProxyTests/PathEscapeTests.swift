import MartletCore
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `Escapes in a logged path` {
    /// The edges of the ranges: printable ASCII without quotes, backslashes and `_` needs none.
    private static let edges: [UInt8] = [
        0x00, 0x01, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x5B, 0x5C, 0x5D, 0x5E, 0x5F, 0x60, 0x7E, 0x7F, 0x80, 0x81, 0xA2,
        0xDC, 0xFE, 0xFF,
    ]

    private func isNeeded(_ path: [UInt8]) -> Bool {
        unsafe path.withUnsafeBufferPointer { unsafe PathEscape.isNeeded(by: $0) }
    }

    private func mustBeEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte > 0x7E || byte == 0x22 || byte == 0x5C || byte == 0x5F
    }

    @Test(arguments: [
        ("", false), ("/", false), ("/a", false), ("/api/v1/users", false), ("/a b", false), ("/~a%20!#[]^", false),
        ("\"", true), ("\\", true), ("/a\"b", true), ("/a\\b", true), ("/a\tb", true), ("/a\u{7F}", true),
        ("/\u{E9}", true), ("/reset/mlt_x", true), ("/a_b", true), ("/a/long/path/of/words/\u{540D}", true),
        ("/a/long/path/of/words\n", true),
    ])
    func `are needed for quotes, backslashes, control bytes and bytes that are not ASCII`(
        _ path: String, _ expected: Bool
    ) {
        #expect(isNeeded(Array(path.utf8)) == expected)
    }

    @Test func `are not needed without bytes`() {
        let isNeeded = unsafe PathEscape.isNeeded(by: UnsafeBufferPointer(start: nil, count: 0))
        #expect(!isNeeded)
    }

    @Test(arguments: 1...26)
    func `are detected for every byte at every offset`(count: Int) {
        var path = [UInt8](repeating: 0x61, count: count)
        var wrong: [String] = []
        for offset in 0..<count {
            for byte in UInt8.min...UInt8.max {
                path[offset] = byte
                if isNeeded(path) != mustBeEscaped(byte) { wrong.append("\(byte) at \(offset)") }
            }
            path[offset] = 0x61
        }
        #expect(wrong == [])
    }

    @Test(arguments: [2, 3, 4, 5, 7, 8, 9, 16, 17])
    func `are detected for every pair of bytes side by side`(count: Int) {
        var wrong: [String] = []
        for offset in 0..<(count - 1) {
            for first in Self.edges {
                for second in Self.edges {
                    var path = [UInt8](repeating: 0x7E, count: count)
                    path[offset] = first
                    path[offset + 1] = second
                    let expected = mustBeEscaped(first) || mustBeEscaped(second)
                    if isNeeded(path) != expected { wrong.append("\(first), \(second) at \(offset)") }
                }
            }
        }
        #expect(wrong == [])
    }

    @Test(arguments: [UInt8(0x20), 0x21, 0x23, 0x5B, 0x5D, 0x7E])
    func `are not needed for many bytes at the edge of those that need them`(byte: UInt8) {
        for count in 0...40 { #expect(!isNeeded([UInt8](repeating: byte, count: count))) }
    }

    @Test func `do not depend on the bytes around the path`() {
        for count in 0...20 {
            var memory = [UInt8](repeating: 0x22, count: count + 32)
            for offset in 16..<(16 + count) { memory[offset] = 0x61 }
            let isNeeded = unsafe memory.withUnsafeBufferPointer { bytes in
                unsafe PathEscape.isNeeded(by: unsafe UnsafeBufferPointer(rebasing: bytes[16..<(16 + count)]))
            }
            #expect(!isNeeded, "\(count) bytes")
        }
    }
}

@Suite struct `IDs of a loop's requests` {
    private func next(_ ids: inout RequestIDs) -> String {
        ids.next()
        return String(decoding: ids.text.array, as: UTF8.self)
    }

    @Test func `are empty before the first request`() {
        let ids = RequestIDs(prefix: 1, count: 5)
        let count = ids.text.count
        #expect(count == 0)
    }

    static let firsts: [(UInt64, UInt64, String)] = [
        (0, 0, "00000000000000000000000000000001"), (.max, .max - 1, "ffffffffffffffffffffffffffffffff"),
        (0xFEDC_BA98_7654_3210, 0x0123_4567_89AB_CDEE, "fedcba98765432100123456789abcdef"),
        (0x0000_0001_0000_0000, 0x0000_0001_0000_0000, "00000001000000000000000100000001"),
        (0xA, 0xF, "000000000000000a0000000000000010"),
    ]

    @Test(arguments: firsts)
    func `have sixteen digits of the prefix and sixteen of the counter`(
        _ prefix: UInt64, _ count: UInt64, _ text: String
    ) {
        var ids = RequestIDs(prefix: prefix, count: count)
        let first = next(&ids)
        #expect(first == text)
    }

    @Test func `start over after the last number`() {
        var ids = RequestIDs(prefix: 0xAB, count: .max - 1)
        let texts = [next(&ids), next(&ids), next(&ids)]
        #expect(
            texts == [
                "00000000000000abffffffffffffffff", "00000000000000ab0000000000000000",
                "00000000000000ab0000000000000001",
            ])
    }

    @Test func `differ for many requests in a row`() {
        var ids = RequestIDs(prefix: 0, count: 0xFFFF_FFFF - 500)
        var texts: Set<String> = []
        for _ in 0..<1000 { texts.insert(next(&ids)) }
        #expect(texts.count == 1000)
        #expect(texts.allSatisfy { $0.utf8.count == 32 })
        #expect(texts.contains("000000000000000000000000ffffffff"))
        #expect(texts.contains("00000000000000000000000100000000"))
    }
}
