/// A fragment of HTML.
///
/// Only literals and other fragments are inserted unchanged. What is interpolated is escaped for its position: as text,
/// as an attribute, or as a URL, whose attribute is dropped unless ``PageURL`` allows it. In positions that take no value,
/// such as tags, scripts and attributes without quotes, it is dropped.
package struct HTML: ExpressibleByStringInterpolation, Sendable, CustomStringConvertible {
    package let text: String

    package var description: String { text }

    fileprivate init(unescaped text: String) { self.text = text }

    /// The markup of a template, whose values were escaped.
    init(markup: String) { text = markup }

    /// A text, escaped.
    package init(_ text: String) { self.text = HTML.escape(text) }

    package init(stringLiteral value: String) { text = value }
    package init(stringInterpolation interpolation: StringInterpolation) { text = interpolation.text }

    package static let empty = HTML(unescaped: "")

    /// The fragments one after the other, with a separator between two of them.
    package static func joined(_ fragments: [HTML], separator: HTML = .empty) -> HTML {
        HTML(unescaped: fragments.map(\.text).joined(separator: separator.text))
    }

    /// The element `style`; a style sheet is never made of interpolated text.
    package static func style(_ sheet: Stylesheet, nonce: String? = nil) -> HTML {
        "<style\(attribute: "nonce", nonce)>\(unescaped: sheet.css)</style>"
    }

    /// Escapes a text for element content and quoted attributes.
    package static func escape(_ text: String) -> String {
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

extension HTML {
    /// Escapes interpolated text by its position.
    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""
        private var scanner = MarkupScanner()
        /// Where the last attribute begins, to drop it.
        private var attributeStart = 0
        /// An attribute was dropped; the literal goes on after this quote.
        private var droppedUntil: UInt8?

        package init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

        /// Markup of our own.
        package mutating func appendLiteral(_ literal: String) {
            var rest = literal[...]
            if let quote = droppedUntil {
                guard let end = rest.utf8.firstIndex(of: quote) else { return }
                rest = rest[rest.utf8.index(after: end)...]
                droppedUntil = nil
                scanner.read(quote)
            }
            let start = text.utf8.count
            for (offset, byte) in rest.utf8.enumerated() {
                scanner.read(byte)
                if scanner.beganAttribute { attributeStart = start + offset }
            }
            text += rest
        }

        /// A text, escaped for its position.
        package mutating func appendInterpolation(_ value: String) {
            guard droppedUntil == nil else { return }
            switch scanner.context {
            case .text, .attribute: text += HTML.escape(value)
            case .url where PageURL.isAllowed(value): text += HTML.escape(value)
            case .url, .forbidden(.urlPart): dropAttribute()
            case .forbidden: return
            }
            scanner.insertValue()
        }

        /// A fragment, where elements may be.
        package mutating func appendInterpolation(_ fragment: HTML) {
            if scanner.isInText { text += fragment.text }
        }

        /// An attribute, with the space before it; `nil` is none.
        package mutating func appendInterpolation(attribute name: StaticString, _ value: String?) {
            guard scanner.context == .forbidden(.tag), let value else { return }
            switch MarkupScanner.context(ofAttribute: "\(name)") {
            case .attribute: text += " \(name)=\"\(HTML.escape(value))\""
            case .url where PageURL.isAllowed(value): text += " \(name)=\"\(HTML.escape(value))\""
            case .url, .text, .forbidden: return
            }
        }

        /// An attribute without a value, with the space before it.
        package mutating func appendInterpolation(flag name: StaticString, _ isSet: Bool) {
            if isSet, scanner.context == .forbidden(.tag) { text += " \(name)" }
        }

        fileprivate mutating func appendInterpolation(unescaped markup: String) { text += markup }

        private mutating func dropAttribute() {
            let bytes = text.utf8
            guard attributeStart < bytes.count else { return }
            let kept = bytes[..<bytes.index(bytes.startIndex, offsetBy: attributeStart)]
            let quote = bytes[bytes.index(bytes.startIndex, offsetBy: attributeStart)...].first {
                $0 == 0x22 || $0 == 0x27
            }
            text = String(Substring(kept))
            droppedUntil = quote
        }
    }
}
