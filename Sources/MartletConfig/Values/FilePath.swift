/// The path of a file that a key names; a relative one is relative to the configuration file.
public struct FilePath: Hashable, Sendable, CustomStringConvertible {
    /// What the system is asked to open.
    public let text: String

    public init(_ text: String) { self.text = text }

    /// Resolves a path as it stands in a configuration file.
    public init(_ text: String, relativeTo file: String) {
        guard !text.hasPrefix("/"), let slash = file.utf8.lastIndex(of: 0x2F) else {
            self.text = text
            return
        }
        self.text = "\(file[...slash])\(text)"
    }

    public var description: String { text }
}

extension FilePath: ConfigurationValue {
    /// A path, not empty.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard !text.isEmpty else { throw node.error(.configBadValue, "must name a file") }
        self.init(text, relativeTo: node.location.file)
    }
}
