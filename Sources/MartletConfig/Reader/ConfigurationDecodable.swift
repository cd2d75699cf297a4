/// A type decoded from a block of `config.yaml`, such as every provider's `Configuration`.
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
/// Unknown keys are reported by the code that decodes the block, not by the type.
public protocol ConfigurationDecodable: Sendable {
    /// Reads the block's keys.
    /// - Throws: `ConfigurationError` if the block cannot be used; other blocks are still decoded.
    init(from reader: inout ConfigurationReader) throws(ConfigurationError)

    /// The block's keys as data, for the JSON Schema and for reporting unknown keys even if `init` throws early.
    /// Without it (the default) the schema allows any keys.
    static var grammar: ConfigurationGrammar? { get }
}

extension ConfigurationDecodable {
    public static var grammar: ConfigurationGrammar? { nil }
}

/// A type decoded from a single value or a list in `config.yaml`.
///
/// String enums have a default implementation: `enum Mode: String, CaseIterable, ConfigurationValue { case off, on }`.
public protocol ConfigurationValue: Sendable {
    /// Reads the value.
    /// - Throws: `ConfigurationError` with the position and code of every error in it.
    init(decoding node: ConfigurationNode) throws(ConfigurationError)
}
