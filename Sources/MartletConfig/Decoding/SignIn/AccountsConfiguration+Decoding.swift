private import MartletCore

extension AccountsConfiguration: KeyedBlock {
    package init() { self.init(url: Located("", at: .none)) }

    static let keys: [ConfigurationKey<Self>] = [
        .key("pool", \.pool, in: 1...256, "Connections to PostgreSQL, for each process."),
        .key(
            "statement_timeout", \.statementTimeout, in: .milliseconds(100) ... .seconds(60),
            "How long a statement of PostgreSQL and a call with its wait for a connection may take: 100ms to 60s."),
        .secretFiles(
            "key_files", \.keys, nonEmpty: true,
            "Several keys, for a change of keys: the last one encrypts, all decrypt."),
        .block("deletion", \.deletion, "How accounts are deleted."),
        .blocks("claims_from", \.claimsFrom, default: nil, "Claims of logins that become claims of the account."),
        .blocks(
            "bootstrap", \.bootstrap, default: nil,
            "Claims that the accounts of certain identities have from the start, such as those of the first admin."),
        .requiredSecret("url", \.secretURL, "`sqlite:PATH`, relative to this file, or `postgresql://…`."),
        .secret(
            "key", \.singleKey,
            "The key that encrypts providers' grants, such as Apple's refresh tokens: 32 bytes in base64."),
        .check(always: true) { accounts, reader in
            guard reader.given("key") ?? reader.given("key_file") != nil, let node = reader.node("key_files") else {
                return
            }
            reader.error(
                .configConflictingKeys, at: node.location, "'key_files' and 'key' are both given in \(reader.title)")
        },
        .check { accounts, reader throws(ConfigurationError) in
            guard let url = resolved(accounts.url.value, relativeTo: accounts.url.location.file) else {
                // Not shown, because it may contain a password.
                throw ConfigurationError(
                    .configBadURL, at: accounts.url.location,
                    "url: must be sqlite:PATH, or postgresql://… without spaces")
            }
            accounts.url = Located(url, at: accounts.url.location)
        },
    ]

    private var secretURL: Located<Secret> {
        get { Located(Secret(url.value), at: url.location) }
        set { url = Located(newValue.value.withBytes { String(decoding: $0, as: UTF8.self) }, at: newValue.location) }
    }

    /// Instead of several.
    private var singleKey: Located<Secret>? {
        get { nil }
        set { if let newValue { keys = [newValue] } }
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

extension DeletionConfiguration: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .key("grace", \.grace, in: .zero...Duration.longestConfigured, "How long a login takes a deletion back."),
        .key("anonymise", \.anonymizes, "Whether nothing but the subject stays."),
        .key(
            "revoke_max_age", \.maximumRevocationAge, in: .zero...Duration.longestConfigured,
            "For how long revoking a grant is attempted before the account counts as deleted without it."),
    ]
}
