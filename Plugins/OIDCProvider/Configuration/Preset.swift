internal import MartletConfig
private import MartletCore
internal import MartletJOSE
internal import MartletJSON

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
            return Values(issuer: issuer, renames: [ClaimRename(from: "scp", to: "scope", isDefault: true)])
        case .line: return Values(issuer: "https://access.line.me", algorithm: .es256)
        case .keycloak:
            return Values(
                issuer: base.map { Self.withoutSlash($0.value.text) },
                renames: [ClaimRename(from: ClaimPath("realm_access", "roles"), to: "roles", isDefault: true)])
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
