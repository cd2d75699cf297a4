package import MartletJSON

/// Claims that are stored with an account and delivered with its credentials, besides those of their providers.
@frozen package struct AccountClaims: Sendable, Equatable {
    /// For every credential of the account: what an operator or a rule has set.
    package var account: JSONObject
    /// By provider: for the credentials of the account's identity there, sessions included.
    package var identities: [String: JSONObject]

    package init(account: JSONObject = [:], identities: [String: JSONObject] = [:]) {
        self.account = account
        self.identities = identities
    }

    /// Adds these claims to those of a provider: a claim of the account wins over one of the identity, and both win
    /// over the provider's own.
    package func merged(into claims: JSONObject, provider: String) -> JSONObject {
        var merged = claims
        for layer in [identities[provider] ?? [:], account] {
            for member in layer.members { merged[member.name] = member.value }
        }
        return merged
    }
}

/// The claims of an account at one moment, and whether it may be used.
@frozen package struct VersionedClaims: Sendable, Equatable {
    /// Counts the changes; 0 for an account that never had any.
    package let version: Int64
    package let claims: AccountClaims
    /// Whether an operator has disabled the account: none of its credentials is accepted.
    package let isDisabled: Bool

    package init(version: Int64, claims: AccountClaims, isDisabled: Bool = false) {
        self.version = version
        self.claims = claims
        self.isDisabled = isDisabled
    }

    /// An account that never had any.
    package static let none = VersionedClaims(version: 0, claims: AccountClaims())
}

extension Identity {
    /// The identity with the claims of its account.
    package func adding(_ claims: AccountClaims, provider: String) -> Identity {
        changed(claims: claims.merged(into: self.claims, provider: provider))
    }
}
