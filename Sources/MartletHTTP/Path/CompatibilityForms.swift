/// The characters whose compatibility form (Unicode's NFKC) has a meaning in a path.
///
/// An upstream that normalizes after decoding treats `\u{FF0F}` as a slash, `\u{2025}` as two dots, and `\u{FF05}2F` as
/// an encoded slash. An ellipsis is three dots to it, which mean nothing, and a sign such as `\u{2105}` is text.
package enum CompatibilityForms {
    /// Ranges of code points in ascending order; a test compares them with the Unicode data of every character.
    private static let ambiguous: [ClosedRange<UInt32>] = [
        0x2024...0x2025, 0xFE30...0xFE30, 0xFE52...0xFE52, 0xFE68...0xFE68, 0xFF0E...0xFF0F, 0xFF3C...0xFF3C,
    ]

    /// Full-width digits and letters, each the form of one hexadecimal digit.
    private static let fullWidthDigits: [ClosedRange<UInt32>] = [0xFF10...0xFF19, 0xFF21...0xFF26, 0xFF41...0xFF46]

    /// Blocks with other characters whose forms begin with hexadecimal digits. They have others too, which no text has
    /// behind a percent sign.
    private static let digitBlocks: [ClosedRange<UInt32>] = [
        0xAA...0xAA, 0xB2...0xB3, 0xB9...0xB9, 0xBC...0xBE, 0x1C4...0x1C6, 0x1F1...0x1F3, 0x1D2C...0x1DA0,
        0x1E9A...0x1E9A, 0x2070...0x2091, 0x2100...0x2189, 0x2460...0x24EA, 0x3250...0x33FF, 0xA7F2...0xA7F3,
        0xFB00...0xFB04, 0x1D400...0x1D7FF, 0x1F100...0x1F190, 0x1FBF0...0x1FBF9,
    ]

    /// Whether the compatibility form of a character is `.`, `..`, `/` or `\`.
    static func isAmbiguous(_ scalar: UInt32) -> Bool { scalar >= 0x2024 && isIn(ambiguous, scalar) }

    /// Whether the compatibility form of a character is `%`.
    static func isPercent(_ scalar: UInt32) -> Bool { scalar == 0xFE6A || scalar == 0xFF05 }

    /// How many hexadecimal digits the compatibility form of a character may begin with: none, one, or two.
    static func hexadecimalDigits(_ scalar: UInt32) -> Int {
        if scalar < 0x80 { return ASCII.hexValue(UInt8(truncatingIfNeeded: scalar)) == nil ? 0 : 1 }
        if isIn(fullWidthDigits, scalar) { return 1 }
        return isIn(digitBlocks, scalar) ? 2 : 0
    }

    private static func isIn(_ ranges: [ClosedRange<UInt32>], _ scalar: UInt32) -> Bool {
        for range in ranges where scalar <= range.upperBound { return scalar >= range.lowerBound }
        return false
    }

    /// Whether a server that normalizes a decoded text finds a separator, a dot segment or an escape that is not there
    /// before.
    package static func areAmbiguous(_ text: some Sequence<Unicode.Scalar>) -> Bool {
        var run = LookAlikeRun()
        for scalar in text where !run.accepts(scalar.value) { return true }
        return false
    }
}

/// Looks at the characters of a decoded text one after the other.
struct LookAlikeRun {
    /// The hexadecimal digits behind a character that looks like `%`; −1 elsewhere.
    private var digits = -1

    /// Whether the next character is what it looks like.
    mutating func accepts(_ scalar: UInt32) -> Bool {
        if digits >= 0 {
            let found = CompatibilityForms.hexadecimalDigits(scalar)
            digits = found == 0 ? -1 : digits &+ found
            if digits >= 2 { return false }
        }
        guard scalar >= 0x80 else { return true }
        if CompatibilityForms.isPercent(scalar) { digits = 0 }
        return !CompatibilityForms.isAmbiguous(scalar)
    }
}
