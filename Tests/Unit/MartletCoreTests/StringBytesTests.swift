import MartletCore
import Testing

@Suite struct StringBytesTests {
    /// Strings with pairwise different bytes: of equal length, equivalent in Unicode, short and long.
    static let texts =
        ["", "a", "b", "K", "kid", "alg", "\u{0}", "\u{0}\u{0}", "\u{212A}", "\u{212B}", "A\u{30A}", "\u{C5}"]
        + ["0123456789abcde", "0123456789abcdf", "0123456789abcdef", "0123456789abcdeg"]
        + ["\u{212B}", "A\u{30A}"].map { String(repeating: "x", count: 40) + $0 }

    @Test func `strings are the same when their bytes are`() {
        for (index, left) in Self.texts.enumerated() {
            for (other, right) in Self.texts.enumerated() {
                // A copy in separate memory.
                let copy = String(decoding: Array(right.utf8), as: UTF8.self)
                #expect(left.hasSameBytes(as: copy) == (index == other), "\(index) \(other)")
            }
        }
    }
}
