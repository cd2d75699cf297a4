/// A node of a YAML document with its position; aliases and `${VAR}` are already expanded.
public struct ConfigurationNode: Sendable {
    /// A scalar of the file.
    public struct Scalar: Sendable, Equatable {
        public let text: String
        /// Whether it is unquoted: only then can it be a number, a boolean or null.
        public let isPlain: Bool
        /// Whether it contained a variable. Inside `{ }` and `[ ]` YAML requires quotes around `${VAR}`, which then do
        /// not make it a string.
        public let hadVariable: Bool

        public init(_ text: String, isPlain: Bool, hadVariable: Bool = false) {
            self.text = text
            self.isPlain = isPlain
            self.hadVariable = hadVariable
        }
    }

    /// One `key: value` of a mapping.
    public struct Entry: Sendable {
        public let key: Located<String>
        public let value: ConfigurationNode

        public init(key: Located<String>, value: ConfigurationNode) {
            self.key = key
            self.value = value
        }
    }

    /// The content of a node; mappings have the file's order and unique keys.
    public indirect enum Content: Sendable {
        case scalar(Scalar)
        case sequence([ConfigurationNode])
        case mapping([Entry])
    }

    public let content: Content
    public let location: SourceLocation

    public init(_ content: Content, at location: SourceLocation) {
        self.content = content
        self.location = location
    }

    /// Whether it is null: `key:`, `~` or `null`.
    public var isNull: Bool {
        guard case .scalar(let scalar) = content, scalar.isPlain else { return false }
        return scalar.text.isEmpty || scalar.text == "~" || scalar.text == "null"
    }

    /// The entries of a mapping, `nil` for anything else.
    public var entries: [Entry]? {
        guard case .mapping(let entries) = content else { return nil }
        return entries
    }

    /// The elements of a list, `nil` for anything else.
    public var elements: [ConfigurationNode]? {
        guard case .sequence(let elements) = content else { return nil }
        return elements
    }

    /// The value of a key, if this is a mapping that has it.
    public subscript(key: String) -> ConfigurationNode? {
        entries?.first { $0.key.value == key }?.value
    }

    /// The error for a node of the wrong type.
    ///
    /// - Parameters:
    ///   - subject: the title of the node followed by a space; empty if the key's name is prefixed later.
    ///   - what: the expected type.
    func mismatch(_ subject: String = "", mustBe what: String) -> ConfigurationError {
        let kind =
            switch content {
            case .scalar: "a single value"
            case .sequence: "a list"
            case .mapping: "a block"
            }
        return error(.configWrongType, isNull ? "\(subject)has no value" : "\(subject)must be \(what), not \(kind)")
    }
}
