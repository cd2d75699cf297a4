private import MartletCore

extension AccountsConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar()
            .withSecret("url", required: true, "`sqlite:PATH`, relative to this file, or `postgresql://…`.")
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let secret = try reader.secret("url")
        let text = secret.value.withBytes { String(decoding: $0, as: UTF8.self) }
        guard let resolved = Self.resolved(text, relativeTo: secret.location.file) else {
            // Not shown, because it may contain a password.
            throw ConfigurationError(
                .configBadURL, at: secret.location, "url: must be sqlite:PATH, or postgresql://… without spaces")
        }
        url = Located(resolved, at: secret.location)
    }

    /// The URL with its paths resolved; `nil` if it is not a supported URL.
    private static func resolved(_ text: String, relativeTo file: String) -> String? {
        guard text.utf8.count <= 2048 else { return nil }
        if text.hasPrefix("sqlite:") { return databaseFile(text.dropFirst(7), relativeTo: file).map { "sqlite:\($0)" } }
        for scheme in ["postgresql://", "postgres://"] where text.hasPrefix(scheme) {
            let isUsable = text != scheme && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            return isUsable ? PostgreSQLFiles.resolve(text, relativeTo: file) : nil
        }
        return nil
    }

    /// The path of the database file.
    ///
    /// `//host` is not a path that anyone intends, and SQLite treats a name that begins with `:` as an in-memory
    /// database, while accounts must outlive the process.
    private static func databaseFile(_ path: Substring, relativeTo file: String) -> String? {
        let isUsable =
            !path.isEmpty && !path.hasPrefix("//") && !path.hasPrefix(":") && !path.hasSuffix("/")
            && path.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        return isUsable ? FilePath(String(path), relativeTo: file).text : nil
    }
}
