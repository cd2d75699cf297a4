internal import MartletCore
package import MartletJSON

/// Rules of the configuration that give accounts claims: `accounts.claims_from` and `accounts.bootstrap`.
package struct LoginClaimRules: Sendable, Equatable {
    /// A claim of logins with a provider becomes a claim of the account.
    package struct Source: Sendable, Equatable {
        package let provider: String
        package let claim: ClaimPath
        /// The name of the account's claim.
        package let name: String

        package init(provider: String, claim: ClaimPath, name: String) {
            self.provider = provider
            self.claim = claim
            self.name = name
        }
    }

    /// The account of an identity has claims from its first credential on.
    package struct Bootstrap: Sendable, Equatable {
        package let provider: String
        package let providerSubject: String
        package let claims: JSONObject

        package init(provider: String, providerSubject: String, claims: JSONObject) {
            self.provider = provider
            self.providerSubject = providerSubject
            self.claims = claims
        }
    }

    private let sources: [Source]
    private let bootstraps: [Bootstrap]

    package init(sources: [Source] = [], bootstraps: [Bootstrap] = []) {
        self.sources = sources
        self.bootstraps = bootstraps
    }

    /// The claims that the account of an identity gets.
    /// - Parameter claims: those of a login; `nil` for a credential that is used directly.
    package func claims(for identity: AccountIdentity, loggingInWith claims: JSONObject?) -> JSONObject {
        var result = JSONObject()
        for bootstrap in bootstraps
        where bootstrap.provider.hasSameBytes(as: identity.provider)
            && identity.subjects.contains(where: { $0.hasSameBytes(as: bootstrap.providerSubject) })
        {
            for member in bootstrap.claims.members { result[member.name] = member.value }
        }
        guard let claims else { return result }
        for source in sources where source.provider.hasSameBytes(as: identity.provider) {
            // A login without the claim, or with one that cannot be stored, changes nothing.
            guard let value = source.claim.value(in: claims), value != .null,
                (try? ClaimRules.check(value: value, of: source.name)) != nil
            else { continue }
            result[source.name] = value
        }
        return result
    }
}
