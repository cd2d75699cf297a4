public import MartletCore

/// Reads the keys of one block, tracks which were requested, and collects errors.
///
/// The error of an optional key is recorded and reading continues, so that all errors of a block are reported
/// together. Only `required` and `secret` throw: read optional keys first.
public struct ConfigurationReader {
    /// The name of the block in messages: `provider 'apple'`.
    public let title: String
    /// The start of the block.
    public let location: SourceLocation
    /// The errors and warnings found so far in this block and in nested blocks.
    public var diagnostics = Diagnostics()

    let entries: [ConfigurationNode.Entry]
    /// The marks of the block's keys: most of those that a block may have are not there, which a mark shows at the price
    /// of one comparison. All, for a block without any.
    let marks: UInt64
    /// The keys of the block's grammar, where its type has one.
    var grammarKeys: [String]? { grammar()?.keyNames }
    /// Makes the grammar, which is needed for errors alone and would take longer than reading the block.
    private let grammar: () -> ConfigurationGrammar?
    /// Every requested key, in order; some more than once.
    var requestedKeys: [String] = []
    /// Unknown keys that were reported already.
    var reportedKeys: Set<String> = []
    var invalidKeys: Set<String> = []

    /// Creates a reader of a block.
    /// - Throws: `config.wrong_type` if the node is not a block.
    public init(
        _ node: ConfigurationNode, title: String, grammar: ConfigurationGrammar? = nil
    ) throws(ConfigurationError) {
        try self.init(node, title: title, of: { grammar })
    }

    /// - Parameter grammar: makes it.
    init(
        _ node: ConfigurationNode, title: String, of grammar: @escaping () -> ConfigurationGrammar?
    ) throws(ConfigurationError) {
        guard let entries = node.entries else {
            throw node.mismatch("\(title) ", mustBe: "a block of keys")
        }
        self.title = title
        self.entries = entries
        marks = entries.isEmpty ? .max : entries.reduce(0) { $0 | Self.mark(of: $1.key.value) }
        self.grammar = grammar
        location = node.location
    }

    /// One bit, which other keys may have too.
    static func mark(of key: String) -> UInt64 {
        let text = key.utf8
        let ends = UInt64(text.first ?? 0) ^ (UInt64(text.last ?? 0) << 2)
        return 1 << ((UInt64(truncatingIfNeeded: text.count &* 7) ^ ends) & 63)
    }

    /// The block's keys, in file order.
    public var keys: [Located<String>] { entries.map(\.key) }

    /// Whether the block has the key; marks the key as known.
    public mutating func has(_ key: String) -> Bool { entry(key) != nil }

    /// The node of a key, for custom decoding.
    public mutating func node(_ key: String) -> ConfigurationNode? { entry(key)?.value }

    /// Records an error of this block.
    public mutating func error(_ code: ErrorCode, at location: SourceLocation, _ text: String) {
        diagnostics.error(code, at: location, text)
    }

    /// Records an error if a key that is not supported yet is present.
    public mutating func unsupported(_ key: String, _ what: String? = nil) {
        guard let entry = entry(key) else { return }
        diagnostics.error(
            .configNotSupported, at: entry.key.location, "\(what ?? "'\(key)' in \(title)") is not supported yet")
    }

    /// Records every unknown key; call it once, after all keys were read.
    public mutating func finish() {
        var count = 0
        for key in keys where !isKnown(key.value) && !reportedKeys.contains(key.value) {
            count += 1
            var hint = ""
            if count <= Suggestion.maximumSuggestions {
                hint = Suggestion.phrase(for: key.value, among: grammarKeys ?? requestedKeys)
                if hint.isEmpty { hint = KeyIndex.phrase(for: key.value, in: grammar()) }
            }
            diagnostics.error(
                .configUnknownKey, at: key.location, "unknown key \(quoted(key.value)) in \(title)\(hint)")
        }
    }

    func isKnown(_ key: String) -> Bool {
        requestedKeys.contains(key) || grammarKeys?.contains(key) == true
    }

    mutating func entry(_ key: String) -> ConfigurationNode.Entry? {
        requestedKeys.append(key)
        return entries.first { $0.key.value == key }
    }
}

extension ConfigurationReader {
    /// The value of a required key; errors are recorded, so that reading can continue with other keys.
    mutating func expected<Value: ConfigurationValue>(_ key: String, as type: Value.Type = Value.self) -> Value? {
        do { return try required(key) } catch {
            diagnostics.add(error)
            return nil
        }
    }

    /// The node of a required key; that it is missing is recorded.
    mutating func expectedNode(_ key: String) -> ConfigurationNode? {
        do { return try requiredNode(key) } catch {
            diagnostics.add(error)
            return nil
        }
    }
}

/// What is wrong with keys that were read.
extension ConfigurationReader {
    /// Records an error about the value of a key, if it is there; the key's name is put before the reason.
    mutating func reject(_ key: String, _ code: ErrorCode, _ reason: String) {
        if let node = node(key) { error(code, at: node.location, "\(key): \(reason)") }
    }

    /// Records a warning about the value of a key, if it is there; the key's name is put before the reason.
    mutating func warn(_ key: String, _ code: ErrorCode, _ reason: String) {
        if let node = node(key) { diagnostics.warning(code, at: node.location, "\(key): \(reason)") }
    }

    /// Records an error at a key beside one that it excludes.
    mutating func reject(_ key: String, beside other: String) {
        guard has(other), let node = node(key) else { return }
        error(.configConflictingKeys, at: node.location, "'\(other)' and '\(key)' are both given in \(title)")
    }

    mutating func checkNotEmpty(_ key: String) {
        if node(key)?.elements?.isEmpty == true { reject(key, .configBadValue, "must not be empty") }
    }

    mutating func checkName(_ name: Located<String>) {
        if let reason = EntityName.validationError(in: name.value) {
            diagnostics.error(.configBadValue, at: name.location, "\(quoted(name.value)) \(reason)")
        }
    }
}
