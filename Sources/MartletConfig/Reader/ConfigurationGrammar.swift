/// What a block may hold, as data: the JSON Schema is made from it, and unknown keys are judged by it.
public struct ConfigurationGrammar: Sendable {
    /// What kind of value a key has.
    public indirect enum Shape: Sendable {
        /// Any single value.
        case text
        /// A text that matches a regular expression of JSON Schema's kind.
        case pattern(String)
        case boolean
        case integer(ClosedRange<Int>)
        /// `250ms`, `10s`, `15m`, `1h`, `30d`.
        case duration
        /// `512B`, `16KiB`, `10MiB`, `1GiB`.
        case size
        /// An absolute `http` or `https` URL.
        case url
        /// The path of a file, relative to the configuration file.
        case path
        case choice([String])
        case list(Shape, nonEmpty: Bool)
        /// Names of the operator's choice.
        case map(Shape)
        case block(ConfigurationGrammar)
        /// An entry of `providers`, whose keys depend on its `kind`.
        case provider
        case either([Shape])
        /// A text, a number or a boolean.
        case literal
        case number
        /// An entry of `authorize`.
        case authorize
        /// An entry of `any` inside `authorize`.
        case condition
        /// Exactly this text.
        case constant(String)
        /// Nothing: the key belongs to the grammar, but not yet to this version.
        case unsupported
        /// Any value whatever, judged elsewhere.
        case anything
    }

    /// One key of a block.
    public struct Key: Sendable {
        public let name: String
        public let shape: Shape
        /// What holds when the key is absent, as it would be written; `nil` when there is no such value.
        public let fallback: String?
        public let isRequired: Bool
        /// One sentence for the guide and for editors.
        public let summary: String
    }

    public private(set) var keys: [Key]
    /// Groups of keys of which exactly one must be there, such as `x` and `x_file`.
    public private(set) var oneOf: [[String]] = []
    /// Pairs of keys that may not both be there.
    public private(set) var exclusive: [[String]] = []

    public init(_ keys: [Key] = []) { self.keys = keys }

    /// The names of all keys.
    public var keyNames: [String] { keys.map(\.name) }

    /// This grammar with a secret `name` that may also be given as `name_file`.
    public func withSecret(_ name: String, required: Bool, _ summary: String) -> ConfigurationGrammar {
        var grammar = self
        grammar.keys.append(.optional(name, .text, summary))
        grammar.keys.append(.optional("\(name)_file", .path, "A file with `\(name)`; its last line break is dropped."))
        if required { return grammar.withOneOf([name, "\(name)_file"]) }
        grammar.exclusive.append([name, "\(name)_file"])
        return grammar
    }

    /// This grammar with more keys, behind its own.
    public func adding(_ more: [Key]) -> ConfigurationGrammar {
        var grammar = self
        grammar.keys += more
        return grammar
    }

    /// This grammar with keys of which exactly one must be there.
    public func withOneOf(_ names: [String]) -> ConfigurationGrammar {
        var grammar = self
        grammar.oneOf.append(names)
        return grammar
    }
}

extension ConfigurationGrammar.Key {
    /// A key that must be there.
    public static func required(_ name: String, _ shape: ConfigurationGrammar.Shape, _ summary: String) -> Self {
        Self(name: name, shape: shape, fallback: nil, isRequired: true, summary: summary)
    }

    /// A key that may be left out.
    public static func optional(
        _ name: String, _ shape: ConfigurationGrammar.Shape, default fallback: String? = nil, _ summary: String
    ) -> Self {
        Self(name: name, shape: shape, fallback: fallback, isRequired: false, summary: summary)
    }
}

extension ConfigurationGrammar.Shape {
    /// The block that a type stands for.
    public static func block<Block: ConfigurationDecodable>(of type: Block.Type) -> Self {
        Block.grammar.map { .block($0) } ?? .anything
    }
}
