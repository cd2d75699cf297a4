private import MartletCore

extension AccountsConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("pool", .integer(1...256), default: "8", "Connections to PostgreSQL, for each process."),
            .optional(
                "statement_timeout", .duration, default: "2s",
                "How long a statement of PostgreSQL and a call with its wait for a connection may take: 100ms to 60s."),
            .optional(
                "key_files", .list(.path, nonEmpty: true),
                "Several keys, for a change of keys: the last one encrypts, all decrypt."),
            .optional("deletion", .block(of: DeletionConfiguration.self), default: "{}", "How accounts are deleted."),
            .optional(
                "claims_from", .list(.block(of: AccountClaimSource.self), nonEmpty: false),
                "Claims of logins that become claims of the account."),
            .optional(
                "bootstrap", .list(.block(of: AccountBootstrap.self), nonEmpty: false),
                "Claims that the accounts of certain identities have from the start, such as those of the first admin."
            ),
        ])
        .withSecret("url", required: true, "`sqlite:PATH`, relative to this file, or `postgresql://…`.")
        .withSecret(
            "key", required: false,
            "The key that encrypts providers' grants, such as Apple's refresh tokens: 32 bytes in base64.")
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        keys = Self.keys(&reader)
        pool = reader.optional("pool", default: pool, in: 1...256)
        statementTimeout = reader.optional(
            "statement_timeout", default: statementTimeout, in: .milliseconds(100)...Duration.seconds(60))
        deletion = reader.block("deletion") ?? DeletionConfiguration()
        claimsFrom = reader.blocks("claims_from").map(\.value)
        bootstrap = reader.blocks("bootstrap").map(\.value)
        let secret = try reader.secret("url")
        let text = secret.value.withBytes { String(decoding: $0, as: UTF8.self) }
        guard let resolved = Self.resolved(text, relativeTo: secret.location.file) else {
            // Not shown, because it may contain a password.
            throw ConfigurationError(
                .configBadURL, at: secret.location, "url: must be sqlite:PATH, or postgresql://… without spaces")
        }
        url = Located(resolved, at: secret.location)
    }

    /// `key` or `key_files`.
    private static func keys(_ reader: inout ConfigurationReader) -> [Located<Secret>] {
        let single = reader.optionalSecret("key")
        let several = reader.secretFiles("key_files")
        if single != nil, let node = reader.node("key_files") {
            reader.error(
                .configConflictingKeys, at: node.location, "'key_files' and 'key' are both given in \(reader.title)")
        }
        return single.map { [$0] } ?? several
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

extension DeletionConfiguration: ConfigurationDecodable {
    private static let periods = Duration.zero...Duration.longestConfigured

    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("grace", .duration, default: "0s", "How long a login takes a deletion back."),
            .optional("anonymise", .boolean, default: "true", "Whether nothing but the subject stays."),
            .optional(
                "revoke_max_age", .duration, default: "7d",
                "For how long revoking a grant is attempted before the account counts as deleted without it."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        grace = reader.optional("grace", default: grace, in: Self.periods)
        anonymizes = reader.optional("anonymise", default: anonymizes)
        maximumRevocationAge = reader.optional("revoke_max_age", default: maximumRevocationAge, in: Self.periods)
    }
}
