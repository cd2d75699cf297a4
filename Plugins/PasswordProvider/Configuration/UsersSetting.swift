internal import MartletConfig

/// The key `users:` of a password provider.
enum UsersSetting: ConfigurationValue {
    /// The password users in the account store.
    case accounts
    /// An htpasswd file, already parsed.
    case file(UserFile)

    private static let accountsText = "accounts"
    private static let filePrefix = "htpasswd:"

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        if text == Self.accountsText {
            self = .accounts
            return
        }
        guard text.hasPrefix(Self.filePrefix), text.utf8.count > Self.filePrefix.utf8.count else {
            throw node.error(.configBadValue, "must be accounts, or htpasswd: and the name of a file")
        }
        let path = FilePath(String(text.dropFirst(Self.filePrefix.count)), relativeTo: node.location.file)
        do { self = .file(try UserFile(path: path.text)) } catch {
            throw ConfigurationError(error.errors.map { Self.diagnostic($0, path: path.text, node) })
        }
    }

    private static func diagnostic(_ error: Htpasswd.LineError, path: String, _ node: ConfigurationNode) -> Diagnostic {
        guard let line = error.line else {
            return Diagnostic(.error, .configFileUnreadable, at: node.location, "cannot use '\(path)': \(error.reason)")
        }
        return Diagnostic(.error, .configBadValue, at: node.location, "'\(path)', line \(line): \(error.reason)")
    }

    static let shape = ConfigurationGrammar.Shape.either([
        .constant(accountsText), .pattern("^\(filePrefix).+$"),
    ])
}
