/// Reads the keys of one block, remembers which were asked for, and collects what is wrong.
///
/// A key that is wrong but has a default, or may be absent, is recorded and reading goes on, so that all mistakes of a
/// block show at once. Only `required` throws: read what is optional first.
public struct ConfigurationReader {
    /// What the block is, for messages: `provider 'apple'`.
    public let title: String
    /// Where the block begins.
    public let location: SourceLocation
    /// What was found so far in this block and in those inside it.
    public var diagnostics = Diagnostics()

    let entries: [ConfigurationNode.Entry]
    /// Every key that was asked for, in order: the block's vocabulary, for suggestions.
    var asked: [String] = []

    /// Begins to read a block.
    /// - Throws: `config.wrong_type` if the node is no block.
    public init(_ node: ConfigurationNode, title: String) throws(ConfigurationError) {
        guard let entries = node.entries else {
            throw ConfigurationError(.configWrongType, at: node.location, "\(title) must be a block of keys, not \(node.kindName)")
        }
        self.title = title
        self.entries = entries
        location = node.location
    }

    /// The block's keys as the file has them, in order.
    public var keys: [Located<String>] { entries.map(\.key) }

    /// Whether the block has the key; asking makes it a known one.
    public mutating func has(_ key: String) -> Bool { node(key) != nil }

    /// The value of a key as it stands, for a type of its own.
    public mutating func node(_ key: String) -> ConfigurationNode? { entry(key)?.value }

    mutating func entry(_ key: String) -> ConfigurationNode.Entry? {
        if !asked.contains(key) { asked.append(key) }
        return entries.first { $0.key.value == key }
    }
}

extension ConfigurationReader {
    /// Reports every key that was not asked for. Whoever decodes a block calls it once, behind the block's own reading.
    public mutating func finish() {
        for entry in entries where !asked.contains(entry.key.value) {
            diagnostics.error(.configUnknownKey, at: entry.key.location, "unknown key '\(entry.key.value)' in \(title)")
        }
    }
}
