/// The keys of a block as data: the source of the JSON Schema and of unknown-key errors.
public struct ConfigurationGrammar: Sendable {
    /// The type of a key's value.
    public indirect enum Shape: Sendable {
        /// Any single value.
        case text
        /// A string that matches a regular expression in JSON Schema's syntax.
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
        /// A block whose keys are names chosen by the operator.
        case map(Shape)
        case block(ConfigurationGrammar)
        /// An entry of `providers`, whose keys depend on its `kind`.
        case provider
        case either([Shape])
        /// A string, a number or a boolean.
        case literal
        case number
        /// An entry of `authorize`.
        case authorize
        /// An entry of `any` inside `authorize`.
        case condition
        /// Exactly this string.
        case constant(String)
        /// No value: the key is reserved but not supported by this version.
        case unsupported
        /// Any value; it is validated elsewhere.
        case anything
    }

    /// One key of a block.
    public struct Key: Sendable {
        public let name: String
        public let shape: Shape
        /// The default, as it would be written in the file; `nil` if there is none.
        public let fallback: String?
        public let isRequired: Bool
        /// One sentence of documentation, for the schema and editors.
        public let summary: String
    }

    public internal(set) var keys: [Key]
    /// Groups of keys of which exactly one is required, such as `x` and `x_file`.
    public private(set) var oneOf: [[String]] = []
    /// Pairs of mutually exclusive keys.
    public private(set) var exclusive: [[String]] = []

    public init(_ keys: [Key] = []) { self.keys = keys }

    /// The names of all keys.
    public var keyNames: [String] { keys.map(\.name) }

    /// This grammar with a secret `name` that may also be given as `name_file`.
    public func withSecret(_ name: String, required: Bool, _ summary: String) -> ConfigurationGrammar {
        var grammar = self
        grammar.keys.append(.optional(name, .text, summary))
        grammar.keys.append(
            .optional("\(name)_file", .path, "A file that contains `\(name)`; a trailing newline is removed."))
        if required { return grammar.withOneOf([name, "\(name)_file"]) }
        grammar.exclusive.append([name, "\(name)_file"])
        return grammar
    }

    /// This grammar with more keys after its own.
    public func adding(_ more: [Key]) -> ConfigurationGrammar {
        var grammar = self
        grammar.keys += more
        return grammar
    }

    /// This grammar with a group of keys of which exactly one is required.
    public func withOneOf(_ names: [String]) -> ConfigurationGrammar {
        var grammar = self
        grammar.oneOf.append(names)
        return grammar
    }

    /// This grammar with a pair of mutually exclusive keys.
    func withAtMostOne(of names: [String]) -> ConfigurationGrammar {
        var grammar = self
        grammar.exclusive.append(names)
        return grammar
    }
}

extension ConfigurationGrammar.Key {
    /// A required key.
    public static func required(_ name: String, _ shape: ConfigurationGrammar.Shape, _ summary: String) -> Self {
        Self(name: name, shape: shape, fallback: nil, isRequired: true, summary: summary)
    }

    /// An optional key.
    public static func optional(
        _ name: String, _ shape: ConfigurationGrammar.Shape, default fallback: String? = nil, _ summary: String
    ) -> Self {
        Self(name: name, shape: shape, fallback: fallback, isRequired: false, summary: summary)
    }
}

extension ConfigurationGrammar.Shape {
    /// The block that a type is decoded from.
    public static func block<Block: ConfigurationDecodable>(of type: Block.Type) -> Self {
        Block.grammar.map { .block($0) } ?? .anything
    }
}
