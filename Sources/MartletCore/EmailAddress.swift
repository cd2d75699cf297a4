/// An email address of a conservative grammar: what mailboxes of people have, and nothing that needs quoting.
///
/// A local part of letters, digits and ``EmailAddress/marks`` with single dots between them, and a domain name with at
/// least two labels. Quoted strings, comments, address literals and characters outside ASCII are rejected; a domain in
/// another script is written in its `xn--` form.
@frozen public struct EmailAddress: Sendable, Hashable {
    /// The longest address, in bytes (RFC 5321 §4.5.3.1.3).
    public static let maximumBytes = 254
    private static let maximumLocalBytes = 64
    private static let maximumLabelBytes = 63
    /// The punctuation of a local part besides the dot; without `%`, `!`, `|` and the backtick, which some relays
    /// interpret.
    static let marks = Array("#$&'*+-/=?^_{}~".utf8)

    /// The whole address in lower case: addresses that differ only in case are one user's.
    public let text: String

    /// The part after the `@`.
    public var domain: Substring { text[(text.firstIndex(of: "@").map(text.index(after:)) ?? text.startIndex)...] }

    /// `nil` for a text that is not such an address.
    public init?(_ text: String) {
        guard text.utf8.count <= Self.maximumBytes else { return nil }
        let bytes = text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        guard let at = bytes.firstIndex(of: UInt8(ascii: "@")), Self.isLocalPart(bytes[..<at]),
            Self.isDomain(bytes[(at + 1)...])
        else { return nil }
        self.text = String(decoding: bytes, as: UTF8.self)
    }

    private static func isLocalPart(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard bytes.count <= maximumLocalBytes else { return false }
        return bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { atom in
            !atom.isEmpty && atom.allSatisfy { isLetterOrDigit($0) || marks.contains($0) }
        }
    }

    private static func isDomain(_ bytes: ArraySlice<UInt8>) -> Bool {
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard labels.count >= 2, let last = labels.last, !last.allSatisfy(isDigit) else { return false }
        return labels.allSatisfy { label in
            (1...maximumLabelBytes).contains(label.count) && label.first != UInt8(ascii: "-")
                && label.last != UInt8(ascii: "-")
                && label.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") }
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func isLetterOrDigit(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) || isDigit(byte) }
}
