/// A type that a block of `config.yaml` stands for: every provider's `Configuration` is one.
///
/// ```swift
/// struct Greeting: ConfigurationDecodable {
///     let leeway: Duration
///     let audiences: NonEmpty<String>
///
///     init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
///         leeway = reader.optional("leeway", default: .zero)
///         audiences = try reader.required("audiences")
///     }
/// }
/// ```
/// Whoever decodes the block reports the keys that were not asked for; the type need not.
public protocol ConfigurationDecodable: Sendable {
    /// Reads the block's keys.
    /// - Throws: `ConfigurationError` when the block cannot be used. It ends this block only.
    init(from reader: inout ConfigurationReader) throws(ConfigurationError)

    /// The block's keys as data, for the JSON Schema and for naming unknown keys even when `init` throws early.
    /// Without it (the default) the schema leaves the block open.
    static var grammar: ConfigurationGrammar? { get }
}

extension ConfigurationDecodable {
    public static var grammar: ConfigurationGrammar? { nil }
}

/// A type that a single value or a list in `config.yaml` stands for.
///
/// Enums of texts get it for free: `enum Mode: String, CaseIterable, ConfigurationValue { case off, on }`.
public protocol ConfigurationValue: Sendable {
    /// Reads the value.
    /// - Throws: `ConfigurationError` with the position and reason of everything that is wrong in it.
    init(decoding node: ConfigurationNode) throws(ConfigurationError)
}
