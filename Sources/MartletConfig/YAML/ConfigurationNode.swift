/// A piece of a YAML document with positions on every part; aliases and `${VAR}` are already replaced.
public struct ConfigurationNode: Sendable {
    /// A text as it stands in the file.
    public struct Scalar: Sendable, Equatable {
        public let text: String
        /// Without quotes: only such a text can be a number, a boolean or nothing.
        public let isPlain: Bool
        /// A variable stood in it.
        ///
        /// Inside `{ }` and `[ ]` YAML wants `${VAR}` in quotes, which then say nothing about its type.
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

    /// What the piece is; mappings keep the file's order and have no key twice.
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

    /// Nothing was written: `key:`, `~` or `null`.
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

    /// The error that this is of another kind than it must be.
    ///
    /// - Parameters:
    ///   - subject: what the piece is called, with a space behind it; nothing where the key's name is put in front.
    ///   - what: what it must be.
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
