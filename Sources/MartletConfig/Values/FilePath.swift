/// The path of a file that a key names. A relative path is resolved against the configuration file.
@frozen public struct FilePath: Hashable, Sendable, CustomStringConvertible {
    /// The path to open.
    public let text: String

    public init(_ text: String) { self.text = text }

    /// Resolves a path of a configuration file.
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
    /// A non-empty path.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard !text.isEmpty else { throw node.error(.configBadValue, "must name a file") }
        self.init(text, relativeTo: node.location.file)
    }
}
