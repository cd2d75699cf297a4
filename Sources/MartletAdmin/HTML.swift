/// A fragment of HTML.
///
/// Interpolated text is escaped; only literals and other fragments are inserted unchanged.
struct HTML: ExpressibleByStringInterpolation, CustomStringConvertible {
    let text: String

    var description: String { text }

    private init(unescaped text: String) { self.text = text }

    /// A text, escaped.
    init(_ text: String) { self.text = HTML.escape(text) }

    init(stringLiteral value: String) { text = value }
    init(stringInterpolation interpolation: StringInterpolation) { text = interpolation.text }

    /// Literal markup.
    static func raw(_ markup: StaticString) -> HTML { HTML(unescaped: "\(markup)") }

    static func joined(_ fragments: [HTML]) -> HTML { HTML(unescaped: fragments.map(\.text).joined()) }

    /// Escapes interpolated text.
    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

        mutating func appendLiteral(_ literal: String) { text += literal }
        mutating func appendInterpolation(_ text: String) { self.text += HTML.escape(text) }
        mutating func appendInterpolation(_ fragment: HTML) { text += fragment.text }
    }

    /// Escapes a text for element content and quoted attributes.
    static func escape(_ text: String) -> String {
        guard text.utf8.contains(where: { "<>&\"'".utf8.contains($0) || $0 < 0x20 || $0 == 0x7F }) else { return text }
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "&": escaped += "&amp;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F: escaped += "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
