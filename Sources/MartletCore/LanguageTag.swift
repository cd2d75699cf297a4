/// A language tag (RFC 5646) by its form alone, such as `en`, `zh-Hans-CN` or `de-1996`; no registry is consulted.
@frozen public struct LanguageTag: Sendable, Hashable {
    /// RFC 5646 §4.4.1 recommends that systems allow at least this many.
    public static let maximumBytes = 35

    /// In the usual case: `zh-Hans-CN`.
    public let text: String

    /// The primary language, in lower case.
    public var language: Substring { text.prefix { $0 != "-" } }

    /// `nil` for a text that is not a tag.
    public init?(_ text: String) {
        guard text.utf8.count <= Self.maximumBytes else { return nil }
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard let first = parts.first, (2...8).contains(first.count), first.allSatisfy(Self.isLetter),
            parts.allSatisfy({ part in
                (1...8).contains(part.count)
                    && part.allSatisfy { Self.isLetter($0) || (0x30...0x39).contains($0) }
            }), parts.last?.count != 1
        else { return nil }
        self.text = parts.enumerated().map { Self.cased($1, at: $0) }.joined(separator: "-")
    }

    /// RFC 5646 §2.1.1: regions in capitals, scripts with one, the rest in lower case.
    private static func cased(_ part: Substring.UTF8View, at index: Int) -> String {
        let lower = part.map { isLetter($0) ? $0 | 0x20 : $0 }
        let isName = index > 0 && lower.allSatisfy(isLetter)
        let text = lower.enumerated().map { position, byte in
            isName && (part.count == 2 || (part.count == 4 && position == 0)) ? byte & 0xDF : byte
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) && byte >= 0x41 }
}
