/// The characters whose compatibility form (Unicode's NFKC) has a `/`, `\`, `.` or `%` in it.
///
/// An upstream that normalizes after decoding treats `\u{FF0F}` as a slash and `\u{2025}` as two dots.
package enum CompatibilityForms {
    /// Ranges of code points in ascending order; a test compares them with the Unicode data of every character.
    private static let ranges: [ClosedRange<UInt32>] = [
        0x2024...0x2026, 0x2100...0x2101, 0x2105...0x2106, 0x2488...0x249B, 0x33C2...0x33C2, 0x33C7...0x33C7,
        0x33D8...0x33D8, 0xFE19...0xFE19, 0xFE30...0xFE30, 0xFE52...0xFE52, 0xFE68...0xFE68, 0xFE6A...0xFE6A,
        0xFF05...0xFF05, 0xFF0E...0xFF0F, 0xFF3C...0xFF3C, 0x1F100...0x1F100,
    ]

    /// Whether the compatibility form of a character contains one with a meaning in a path.
    package static func areAmbiguous(_ scalar: UInt32) -> Bool {
        guard scalar >= 0x2024 else { return false }
        for range in ranges where scalar <= range.upperBound { return scalar >= range.lowerBound }
        return false
    }
}
