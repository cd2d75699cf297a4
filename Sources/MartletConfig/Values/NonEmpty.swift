/// A list with at least one element.
@frozen public struct NonEmpty<Element: Sendable>: Sendable, RandomAccessCollection {
    public let first: Element
    /// All elements, including the first.
    public let elements: [Element]

    public init(_ first: Element, _ rest: Element...) {
        self.first = first
        elements = [first] + rest
    }

    /// `nil` for an empty list.
    public init?(_ elements: [Element]) {
        guard let first = elements.first else { return nil }
        self.first = first
        self.elements = elements
    }

    public var startIndex: Int { elements.startIndex }
    public var endIndex: Int { elements.endIndex }
    public subscript(position: Int) -> Element { elements[position] }
}

extension NonEmpty: ConfigurationValue where Element: ConfigurationValue {
    /// A list of at least one element.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let list = Self(try [Element](decoding: node)) else {
            throw node.error(.configBadValue, "must not be empty")
        }
        self = list
    }
}

extension Array: ConfigurationValue where Element: ConfigurationValue {
    /// A list; the error of every invalid element is reported.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let nodes = node.elements else {
            guard case .scalar(let scalar) = node.content, !node.isNull else { throw node.mismatch(mustBe: "a list") }
            throw node.error(.configWrongType, "must be a list: write [\(quoted(scalar.text))]")
        }
        var values: [Element] = []
        var errors: [Diagnostic] = []
        for node in nodes {
            do { values.append(try Element(decoding: node)) } catch { errors += error.diagnostics }
        }
        guard errors.isEmpty else { throw ConfigurationError(errors) }
        self = values
    }
}
