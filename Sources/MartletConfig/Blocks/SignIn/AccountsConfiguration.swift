package import MartletCore
package import MartletJSON

/// `accounts:` — the account store.
@frozen package struct AccountsConfiguration: KeyedBlock {
    /// `sqlite:PATH` (the path resolved against the configuration file) or `postgresql://…`, as text.
    package var url = Located<String>.unread
    /// The keys that encrypt grants, in base64, as text; the last one seals. MartletIdentities decodes them.
    package var keys: [Located<Secret>] = []
    package var pool = 8
    package var statementTimeout = Duration.seconds(2)
    package var deletion = DeletionConfiguration()
    package var claimsFrom: [AccountClaimSource] = []
    package var bootstrap: [AccountBootstrap] = []

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

/// `accounts.deletion:` — how accounts are deleted.
@frozen package struct DeletionConfiguration: KeyedBlock, Equatable {
    package var grace = Duration.zero
    package var anonymizes = true
    package var maximumRevocationAge = Duration.seconds(7 * 86_400)

    package init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key("grace", \.grace, in: .zero...Duration.longestConfigured, "How long a login takes a deletion back."),
        .key("anonymise", \.anonymizes, "Whether nothing but the subject stays."),
        .key(
            "revoke_max_age", \.maximumRevocationAge, in: .zero...Duration.longestConfigured,
            "For how long revoking a grant is attempted before the account counts as deleted without it."),
    ]
}

/// One entry of `accounts.claims_from`.
@frozen package struct AccountClaimSource: KeyedBlock {
    package var provider = Located<String>.unread
    package var claim = Located(ClaimPath(""), at: .none)
    /// The name of the account's claim.
    package var name = Located<String>.unread

    static let keys: [ConfigurationKey<Self>] = [
        .required("provider", \.provider, endsBlock: true, "The name of the provider whose logins have the claim."),
        .required(
            "claim", \.claim, endsBlock: true,
            "The claim of the login, or the names on the way to a member of it."),
        .row(
            .optional(
                "as", .text, "The name of the account's claim; by default that of the login's. A member needs one.")),
        .check { source, reader throws(ConfigurationError) in
            let claim = source.claim
            source.name =
                claim.value.isNested
                ? try reader.required("as") : reader.optional("as") ?? Located(claim.value.name, at: claim.location)
        },
    ]
}

/// One entry of `accounts.bootstrap`.
@frozen package struct AccountBootstrap: KeyedBlock {
    package var provider = Located<String>.unread
    package var providerSubject = Located<String>.unread
    package var claims: [(name: Located<String>, value: JSONValue)] = []

    static let keys: [ConfigurationKey<Self>] = [
        .required("provider", \.provider, endsBlock: true, "The provider's name."),
        .required(
            "provider_subject", \.providerSubject, endsBlock: true,
            "The provider's own identifier of the user; of passwords, the name."),
        .row(
            .required(
                "claims", .map(.either([.literal, .list(.literal, nonEmpty: false)])),
                "The claims: texts, numbers, booleans, and lists of them."), endsBlock: true
        ) { bootstrap, reader throws(ConfigurationError) in
            let node = try reader.requiredNode("claims")
            guard let entries = node.entries, !entries.isEmpty else {
                throw node.error(.configWrongType, "claims: must be a block of claims")
            }
            for entry in entries { bootstrap.claims.append((entry.key, try value(entry.value))) }
        },
    ]

    private static func value(_ node: ConfigurationNode) throws(ConfigurationError) -> JSONValue {
        guard let elements = node.elements else { return try ClaimLiteral(decoding: node).json }
        var values: [JSONValue] = []
        for element in elements { values.append(try ClaimLiteral(decoding: element).json) }
        return .array(values)
    }
}

extension ClaimLiteral {
    /// The value as JSON; a whole number is an integer.
    fileprivate var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .bool(let value): .bool(value)
        case .number(let value):
            Int64(exactly: value).map { .integer($0) } ?? JSONNumber(value).map { .number($0) } ?? .null
        }
    }
}
