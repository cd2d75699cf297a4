/// A user's name as the client sent it: untrusted text, sanitized for display.
public enum DisplayName {
    /// In Unicode scalars.
    public static let maximumLength = 256

    /// The parts in order with one space between words; `nil` if nothing is left.
    public static func clean(_ parts: [String]) -> String? {
        let words = parts.flatMap { part in
            part.unicodeScalars.split(whereSeparator: isSpace).map { $0.filter { !isHidden($0) } }
        }
        let text = words.filter { !$0.isEmpty }.map { String(String.UnicodeScalarView($0)) }.joined(separator: " ")
        let short = text.unicodeScalars.prefix(maximumLength).drop { $0 == " " }
        let name = String(String.UnicodeScalarView(short.last == " " ? short.dropLast() : short))
        return name.isEmpty ? nil : name
    }

    /// Whether a text has characters that are not displayed, line breaks included.
    package static func hasHiddenCharacters(_ text: String) -> Bool { text.unicodeScalars.contains(where: isHidden) }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }

    /// Control characters, and marks that change the direction of the text around the name.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
            || scalar.properties.isNoncharacterCodePoint || scalar == "\u{FEFF}"
    }
}
