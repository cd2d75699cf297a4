import MartletCore
import Testing

@Suite struct StringBytesTests {
    /// Texts of which no two are the same bytes: of equal length, equivalent in Unicode, short and long.
    static let texts =
        ["", "a", "b", "K", "kid", "alg", "\u{0}", "\u{0}\u{0}", "\u{212A}", "\u{212B}", "A\u{30A}", "\u{C5}"]
        + ["0123456789abcde", "0123456789abcdf", "0123456789abcdef", "0123456789abcdeg"]
        + ["\u{212B}", "A\u{30A}"].map { String(repeating: "x", count: 40) + $0 }

    @Test func `texts are the same where their bytes are`() {
        for (place, left) in Self.texts.enumerated() {
            for (other, right) in Self.texts.enumerated() {
                // A copy of its own, not the same memory.
                let copy = String(decoding: Array(right.utf8), as: UTF8.self)
                #expect(left.hasSameBytes(as: copy) == (place == other), "\(place) \(other)")
            }
        }
    }
}
