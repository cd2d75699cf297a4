internal import MartletConfig
private import MartletCore
internal import MartletJOSE

/// `preset`: what is known of a service, so that its keys need not be written; a key that is written wins.
enum Preset: String, CaseIterable, ConfigurationValue {
    case google
    case microsoft
    case line
    case keycloak
    case auth0

    /// What a preset fills in.
    struct Values {
        var issuer: String?
        /// Other spellings of the issuer in tokens.
        var otherIssuers: [String] = []
        var algorithm = SignatureAlgorithm.rs256
        var renames: [ClaimRename] = []
    }

    /// Reads the keys that only presets have: `tenant` and `base_url`.
    func values(from reader: inout ConfigurationReader) throws(ConfigurationError) -> Values {
        let tenant = reader.optional("tenant", as: Located<String>.self)
        let base = reader.optional("base_url", as: Located<URLText>.self)
        if let tenant, self != .microsoft {
            throw ConfigurationError(
                .configConflictingKeys, at: tenant.location, "tenant: belongs to 'preset: microsoft'")
        }
        if let base, self != .keycloak, self != .auth0 {
            throw ConfigurationError(
                .configConflictingKeys, at: base.location, "base_url: belongs to 'preset: keycloak' and 'preset: auth0'"
            )
        }
        switch self {
        case .google:
            return Values(issuer: "https://accounts.google.com", otherIssuers: ["accounts.google.com"])
        case .microsoft:
            let issuer = try tenant.map { (tenant) throws(ConfigurationError) in
                "https://login.microsoftonline.com/\(try Self.tenantID(tenant))/v2.0"
            }
            return Values(issuer: issuer, renames: [ClaimRename(from: "scp", to: "scope")])
        case .line: return Values(issuer: "https://access.line.me", algorithm: .es256)
        case .keycloak: return Values(issuer: base.map { Self.withoutSlash($0.value.text) })
        case .auth0: return Values(issuer: base.map { Self.withoutSlash($0.value.text) + "/" })
        }
    }

    /// The key without which the preset knows no issuer.
    var neededKey: String {
        switch self {
        case .microsoft: "tenant"
        case .keycloak, .auth0: "base_url"
        case .google, .line: "issuer"
        }
    }

    private static func withoutSlash(_ url: String) -> String { url.hasSuffix("/") ? String(url.dropLast()) : url }

    /// The names `common`, `organizations` and `consumers`, and domains, have tokens with another issuer.
    private static func tenantID(_ tenant: Located<String>) throws(ConfigurationError) -> String {
        let parts = tenant.value.split(separator: "-", omittingEmptySubsequences: false)
        let isID =
            parts.map(\.utf8.count) == [8, 4, 4, 4, 12]
            && parts.allSatisfy { part in
                part.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
            }
        guard isID else {
            throw ConfigurationError(
                .configBadValue, at: tenant.location,
                "tenant: must be the id of a directory, 36 characters in lower case: tokens name no other tenant")
        }
        return tenant.value
    }
}

/// One entry of `rename`.
struct ClaimRename: Sendable {
    let from: String
    let to: String
}

/// `rename`: new names of claims, for rules and headers.
struct RenameMap: ConfigurationValue {
    /// Claims that mean what the token says: nothing else may take their names.
    private static let fixed = ["iss", "sub", "aud", "exp", "iat", "nbf", "azp", "cnf"]
    private static let maximumNameBytes = 255

    let renames: [ClaimRename]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let entries = node.entries else {
            throw node.error(.configWrongType, "must be a block of claims and their new names")
        }
        var renames: [ClaimRename] = []
        for entry in entries {
            let name = try entry.value.text()
            guard (1...Self.maximumNameBytes).contains(name.utf8.count), !entry.key.value.isEmpty else {
                throw entry.value.error(.configBadValue, "a name of a claim has 1 to \(Self.maximumNameBytes) bytes")
            }
            guard !Self.fixed.contains(where: { name.hasSameBytes(as: $0) }) else {
                throw entry.value.error(.configBadValue, "no other claim can be named '\(name)'")
            }
            guard !renames.contains(where: { $0.to.hasSameBytes(as: name) }) else {
                throw entry.value.error(.configDuplicateName, "two claims cannot both be named '\(name)'")
            }
            renames.append(ClaimRename(from: entry.key.value, to: name))
        }
        self.renames = renames
    }
}
