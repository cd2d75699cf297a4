internal import MartletCore

/// How the value of a key is written: its shape in the grammar, the text of a default, and what a property gets of it,
/// which is the value itself unless a type says otherwise.
protocol Spelling: Sendable {
    associatedtype Content: Sendable = Self
    /// Any single value, unless a type says otherwise.
    static var shape: ConfigurationGrammar.Shape { get }
    /// A default as it is written in the file; `nil` for none.
    static func text(of content: Content) -> String?
    var content: Content { get }
    init(decoding node: ConfigurationNode) throws(ConfigurationError)
}

extension Spelling {
    static var shape: ConfigurationGrammar.Shape { .text }
    static func text(of content: Content) -> String? { nil }
}

extension Spelling where Content == Self {
    var content: Self { self }
}

extension Spelling {
    /// Reads a value whose text follows a rule.
    init(decoding node: ConfigurationNode, _ rule: TextRule?) throws(ConfigurationError) {
        try self.init(decoding: node)
        try rule?.check(node)
    }
}

extension Spelling where Self: ConfigurationQuantity {
    static func shape(of range: ClosedRange<Self>) -> ConfigurationGrammar.Shape {
        (range as? ClosedRange<Int>).map { .integer($0) } ?? shape
    }
}

/// A word of several.
typealias ConfigurationChoice = CaseIterable & ConfigurationValue & Spelling

extension Spelling where Self: RawRepresentable & CaseIterable, RawValue == String {
    static var shape: ConfigurationGrammar.Shape { .choice(allCases.map(\.rawValue)) }
}

extension Spelling where Self: RawRepresentable, RawValue == String, Content == Self {
    static func text(of content: Self) -> String? { content.rawValue }
}

/// A text of a certain form, which a property has as text.
protocol TextSpelling: ConfigurationValue, Spelling where Content == String {
    var text: String { get }
}

extension TextSpelling {
    static func text(of content: String) -> String? { content }
    var content: String { text }
}

extension String: Spelling {
    static func text(of content: String) -> String? { content }
}

extension Bool: Spelling {
    static var shape: ConfigurationGrammar.Shape { .boolean }
    static func text(of content: Bool) -> String? { String(content) }
}

extension Int: Spelling {
    static var shape: ConfigurationGrammar.Shape { .integer(.min ... .max) }
    static func text(of content: Int) -> String? { String(content) }
}

/// A port.
extension UInt16: Spelling {
    private static let ports = 1...65_535
    static var shape: ConfigurationGrammar.Shape { .integer(ports) }
    static func text(of content: UInt16) -> String? { String(content) }
    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        self.init(truncatingIfNeeded: try Int(decoding: node, in: Self.ports))
    }
}

extension Duration: Spelling {
    static var shape: ConfigurationGrammar.Shape { .duration }
    /// As people say it: 60 seconds rather than one minute, 24 hours rather than one day.
    static func text(of content: Duration) -> String? {
        switch content {
        case .seconds(60): "60s"
        case .seconds(86_400): "24h"
        default: content.configurationText
        }
    }
}

extension ByteSize: Spelling {
    static var shape: ConfigurationGrammar.Shape { .size }
    static func text(of bytes: Int) -> String? { ByteSize(bytes: bytes).configurationText }
    var content: Int { bytes }
}

extension FilePath: Spelling {
    static var shape: ConfigurationGrammar.Shape { .path }
}

/// The path of a file, which a property has as text.
struct PathText: TextSpelling {
    static let shape = ConfigurationGrammar.Shape.path
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) { text = try FilePath(decoding: node).text }
}

extension URLText: Spelling {
    static var shape: ConfigurationGrammar.Shape { .url }
}

extension Located: Spelling where Value: ConfigurationValue & Spelling {
    static var shape: ConfigurationGrammar.Shape { Value.shape }
    static func text(of content: Located<Value.Content>) -> String? { Value.text(of: content.value) }
    var content: Located<Value.Content> { Located<Value.Content>(value.content, at: location) }
}

/// A key without a default.
extension Optional: Spelling where Wrapped: Spelling {
    static var shape: ConfigurationGrammar.Shape { Wrapped.shape }
    static func text(of content: Wrapped.Content?) -> String? { content.flatMap(Wrapped.text) }
    var content: Wrapped.Content? { map(\.content) }

    init(decoding node: ConfigurationNode) throws(ConfigurationError) { self = try Wrapped(decoding: node) }
}

extension Array: Spelling where Element: ConfigurationValue & Spelling {
    static var shape: ConfigurationGrammar.Shape { .list(Element.shape, nonEmpty: false) }
    static func text(of content: [Element.Content]) -> String? {
        "[\(content.compactMap(Element.text).joined(separator: ", "))]"
    }
    var content: [Element.Content] { map(\.content) }
}

/// A list that has an element if the key is there; without it, the property may be empty.
extension NonEmpty: Spelling where Element: ConfigurationValue & Spelling {
    static var shape: ConfigurationGrammar.Shape { .list(Element.shape, nonEmpty: true) }
    static func text(of content: [Element.Content]) -> String? {
        content.isEmpty ? nil : [Element].text(of: content)
    }
    var content: [Element.Content] { map(\.content) }
}

/// What a text has to be, and what is said of one that is not.
struct TextRule: Sendable {
    let code: ErrorCode
    let holds: @Sendable (String) -> Bool
    let message: @Sendable (String) -> String

    init(
        _ code: ErrorCode, _ holds: @escaping @Sendable (String) -> Bool,
        _ message: @escaping @Sendable (String) -> String
    ) {
        (self.code, self.holds, self.message) = (code, holds, message)
    }

    static let notEmpty = TextRule(.configBadValue, { !$0.isEmpty }, { _ in "must not be empty" })

    func check(_ node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard holds(text) else { throw node.error(code, message(text)) }
    }
}
