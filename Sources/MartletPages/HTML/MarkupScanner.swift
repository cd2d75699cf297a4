/// Follows a text of HTML byte by byte, and knows what a value would be at the current position.
///
/// It reads well-formed markup as browsers do (HTML, §13.2.5). Where it and a browser could differ, values are escaped
/// for every context anyway; the only decisions that depend on the position are those about URLs and about positions
/// that take no value.
package struct MarkupScanner: Sendable {
    /// What a value at a position is.
    package enum Context: Sendable, Equatable {
        /// The text of an element, a title or a text area.
        case text
        /// In a quoted attribute.
        case attribute
        /// The whole value of a quoted attribute that is a URL.
        case url
        case forbidden(Reason)
    }

    /// Why a position takes no value.
    package enum Reason: String, Sendable, Equatable {
        case script = "a script"
        case style = "a style sheet"
        case rawText = "an element whose text is not escaped"
        case comment = "a comment or a declaration"
        case tag = "a tag, outside of a quoted attribute"
        case unquoted = "an attribute without quotes"
        case code = "an attribute with code or style"
        case urlPart = "a part of a URL"
        case meta = "the content of a meta element"
    }

    private enum State: Equatable {
        case text, tagOpen, endTagOpen, tagName, insideTag
        case attributeName, afterAttributeName, beforeValue, unquotedValue
        case value(quote: UInt8)
        case declaration, comment, bogusComment
        case rawText, escapableText
    }

    /// Names are compared with short ones; the rest of a longer one does not matter.
    private static let maximumName = 32
    private static let rawElements: Set<String> = [
        "script", "style", "iframe", "noembed", "noframes", "noscript", "plaintext", "xmp",
    ]
    private static let urlAttributes: Set<String> = [
        "action", "background", "cite", "data", "formaction", "href", "longdesc", "manifest", "poster", "src",
        "xlink:href",
    ]
    /// Attributes whose values are code, style sheets, documents or lists of URLs.
    private static let codeAttributes: Set<String> = [
        "style", "srcdoc", "srcset", "imagesrcset", "ping", "archive", "http-equiv",
    ]

    private var state = State.text
    private var element: [UInt8] = []
    private var attribute: [UInt8] = []
    private var isEndTag = false
    private var isValueEmpty = true
    /// How much of `--` (comments), `<!--` (declarations) or `</name` (raw text) the last bytes are.
    private var matched = 0
    /// Whether the last byte was the first one of an attribute's name.
    private(set) var beganAttribute = false
    /// The name of the element that the last byte began, in lower case; only right after `>`, a space or a slash.
    package private(set) var begunElement: String?
    /// The name of the element that the last byte ended; only right after `>`, a space or a slash.
    package private(set) var endedElement: String?

    package init() {}

    /// Whether the position is between elements or in the text of one.
    package var isInText: Bool { state == .text }

    package var context: Context {
        switch state {
        case .text: .text
        case .escapableText: matched == 0 ? .text : .forbidden(.tag)
        case .value: attributeContext
        case .rawText: .forbidden(element == Array("script".utf8) ? .script : rawReason)
        case .comment, .bogusComment, .declaration: .forbidden(.comment)
        case .unquotedValue, .beforeValue: .forbidden(.unquoted)
        case .tagOpen, .endTagOpen, .tagName, .insideTag, .attributeName, .afterAttributeName: .forbidden(.tag)
        }
    }

    /// The context of the whole value of an attribute.
    static func context(ofAttribute name: String) -> Context {
        if name.hasPrefix("on") || codeAttributes.contains(name) { return .forbidden(.code) }
        return urlAttributes.contains(name) ? .url : .attribute
    }

    /// A value was inserted here.
    mutating func insertValue() { isValueEmpty = false }

    /// Reads the next byte of the markup.
    package mutating func read(_ byte: UInt8) {
        beganAttribute = false
        (begunElement, endedElement) = (nil, nil)
        switch state {
        case .text: if byte == UInt8(ascii: "<") { state = .tagOpen }
        case .tagOpen, .endTagOpen: readTagOpen(byte)
        case .tagName: readTagName(byte)
        case .insideTag, .attributeName, .afterAttributeName: readAttributeName(byte)
        case .beforeValue, .value, .unquotedValue: readValue(byte)
        case .declaration, .comment, .bogusComment: readComment(byte)
        case .rawText, .escapableText: readRawText(byte)
        }
    }

    private var rawReason: Reason { element == Array("style".utf8) ? .style : .rawText }

    private var attributeContext: Context {
        let name = String(decoding: attribute, as: UTF8.self)
        // With `http-equiv` in the same element it is a URL, among others.
        if name == "content", element == Array("meta".utf8) { return .forbidden(.meta) }
        let context = Self.context(ofAttribute: name)
        return context == .url && !isValueEmpty ? .forbidden(.urlPart) : context
    }

    private mutating func readTagOpen(_ byte: UInt8) {
        let isEnd = state == .endTagOpen
        if Self.isLetter(byte) {
            (state, element, isEndTag) = (.tagName, [byte | 0x20], isEnd)
        } else if isEnd {
            state = byte == UInt8(ascii: ">") ? .text : .bogusComment
        } else {
            switch byte {
            case UInt8(ascii: "/"): state = .endTagOpen
            case UInt8(ascii: "!"): (state, matched) = (.declaration, 0)
            case UInt8(ascii: "?"): state = .bogusComment
            case UInt8(ascii: "<"): state = .tagOpen
            default: state = .text
            }
        }
    }

    private mutating func readTagName(_ byte: UInt8) {
        if Self.isSpace(byte) || byte == UInt8(ascii: "/") || byte == UInt8(ascii: ">") {
            let name = String(decoding: element, as: UTF8.self)
            if isEndTag { endedElement = name } else { begunElement = name }
        }
        if Self.isSpace(byte) || byte == UInt8(ascii: "/") {
            state = .insideTag
        } else if byte == UInt8(ascii: ">") {
            endTag()
        } else if element.count < Self.maximumName {
            element.append(Self.lower(byte))
        }
    }

    private mutating func readAttributeName(_ byte: UInt8) {
        switch byte {
        case _ where Self.isSpace(byte): if state == .attributeName { state = .afterAttributeName }
        case UInt8(ascii: "/"): state = .insideTag
        case UInt8(ascii: ">"): endTag()
        case UInt8(ascii: "=") where state != .insideTag: state = .beforeValue
        case _ where state == .attributeName:
            if attribute.count < Self.maximumName { attribute.append(Self.lower(byte)) }
        default:
            (state, attribute, beganAttribute) = (.attributeName, [Self.lower(byte)], true)
        }
    }

    private mutating func readValue(_ byte: UInt8) {
        switch state {
        case .value(let quote): if byte == quote { state = .insideTag } else { isValueEmpty = false }
        case .beforeValue where byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'"):
            (state, isValueEmpty) = (.value(quote: byte), true)
        case _ where byte == UInt8(ascii: ">"): endTag()
        case _ where Self.isSpace(byte): if state == .unquotedValue { state = .insideTag }
        default: state = .unquotedValue
        }
    }

    private mutating func readComment(_ byte: UInt8) {
        let isDash = byte == UInt8(ascii: "-")
        switch state {
        case .declaration where isDash && matched == 1: (state, matched) = (.comment, 2)
        case .declaration where isDash && matched == 0: matched = 1
        case .comment where isDash: matched = min(matched + 1, 2)
        case .comment where byte == UInt8(ascii: "!") && matched == 2: break
        case .comment where byte != UInt8(ascii: ">") || matched < 2: matched = 0
        case _ where byte == UInt8(ascii: ">"): state = .text
        default: state = .bogusComment
        }
    }

    private mutating func readRawText(_ byte: UInt8) {
        let end = [UInt8(ascii: "<"), UInt8(ascii: "/")] + element
        if matched < end.count {
            matched = Self.lower(byte) == end[matched] ? matched + 1 : byte == end[0] ? 1 : 0
        } else if Self.isSpace(byte) || byte == UInt8(ascii: "/") {
            (state, isEndTag) = (.insideTag, true)
        } else if byte == UInt8(ascii: ">") {
            state = .text
        } else {
            matched = byte == end[0] ? 1 : 0
        }
    }

    private mutating func endTag() {
        let name = String(decoding: element, as: UTF8.self)
        matched = 0
        if isEndTag {
            state = .text
        } else if Self.rawElements.contains(name) {
            state = .rawText
        } else {
            state = name == "title" || name == "textarea" ? .escapableText : .text
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) && byte >= 0x41 }
    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) && byte != 0x0B }
    private static func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
