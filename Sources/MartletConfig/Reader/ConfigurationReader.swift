public import MartletCore

/// Reads the keys of one block, remembers which were asked for, and collects what is wrong.
///
/// A key that is wrong but has a default, or may be absent, is recorded and reading goes on, so that all mistakes of a
/// block show at once. Only `required` and `secret` throw: read what is optional first.
public struct ConfigurationReader {
    /// What the block is, for messages: `provider 'apple'`.
    public let title: String
    /// Where the block begins.
    public let location: SourceLocation
    /// What was found so far in this block and in those inside it.
    public var diagnostics = Diagnostics()

    let entries: [ConfigurationNode.Entry]
    /// The keys of the block's grammar, where its type has one.
    let vocabulary: [String]?
    /// Every key that was asked for, in order.
    var asked: [String] = []
    /// Unknown keys that were reported already.
    var reportedKeys: Set<String> = []

    /// Begins to read a block.
    /// - Throws: `config.wrong_type` if the node is no block.
    public init(
        _ node: ConfigurationNode, title: String, grammar: ConfigurationGrammar? = nil
    ) throws(ConfigurationError) {
        guard let entries = node.entries else {
            throw node.mismatch("\(title) ", mustBe: "a block of keys")
        }
        self.title = title
        self.entries = entries
        vocabulary = grammar?.keyNames
        location = node.location
    }

    /// The block's keys as the file has them, in order.
    public var keys: [Located<String>] { entries.map(\.key) }

    /// Whether the block has the key; asking makes it a known one.
    public mutating func has(_ key: String) -> Bool { entry(key) != nil }

    /// The value of a key as it stands, for a type of its own.
    public mutating func node(_ key: String) -> ConfigurationNode? { entry(key)?.value }

    /// Records an error of the block's own.
    public mutating func error(_ code: ErrorCode, at location: SourceLocation, _ text: String) {
        diagnostics.error(code, at: location, text)
    }

    /// Refuses a key whose feature is not there yet.
    public mutating func unsupported(_ key: String, _ what: String? = nil) {
        guard let entry = entry(key) else { return }
        diagnostics.error(
            .configNotSupported, at: entry.key.location, "\(what ?? "'\(key)' in \(title)") is not supported yet")
    }

    /// Reports every key that does not belong to the block; whoever decodes a block calls it once, when all is read.
    public mutating func finish() {
        var count = 0
        for key in keys where !isKnown(key.value) && !reportedKeys.contains(key.value) {
            count += 1
            let hint =
                count <= Suggestion.mostPhrases ? Suggestion.phrase(for: key.value, among: vocabulary ?? asked) : ""
            diagnostics.error(
                .configUnknownKey, at: key.location, "unknown key \(quoted(key.value)) in \(title)\(hint)")
        }
    }

    func isKnown(_ key: String) -> Bool {
        asked.contains(key) || vocabulary?.contains(key) == true
    }

    mutating func entry(_ key: String) -> ConfigurationNode.Entry? {
        if !asked.contains(key) { asked.append(key) }
        return entries.first { $0.key.value == key }
    }
}

extension ConfigurationReader {
    /// The value of a key that must be there; what is wrong is recorded, so that reading can go on to the other keys.
    mutating func expected<Value: ConfigurationValue>(_ key: String, as type: Value.Type = Value.self) -> Value? {
        do { return try required(key) } catch {
            diagnostics.add(error)
            return nil
        }
    }
}

extension ConfigurationReader {
    /// The name under a key that must be there; what is wrong is recorded.
    mutating func expectedName(_ key: String) -> Located<String>? {
        guard let name = expected(key, as: Located<String>.self) else { return nil }
        checkName(name)
        return name
    }

    /// Records what is wrong with a name.
    mutating func checkName(_ name: Located<String>) {
        if let flaw = EntityName.flaw(in: name.value) {
            diagnostics.error(.configBadValue, at: name.location, "\(quoted(name.value)) \(flaw)")
        }
    }
}
