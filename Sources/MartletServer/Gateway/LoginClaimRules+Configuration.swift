internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletJSON

extension LoginClaimRules {
    /// The rules of `accounts:`; errors are recorded.
    init(_ configuration: GatewayConfiguration, into diagnostics: inout Diagnostics) {
        let accounts = configuration.accounts
        let providers = configuration.providers.map(\.name.value)
        func check(provider: Located<String>) {
            guard !providers.contains(provider.value) else { return }
            let hint = Suggestion.phrase(for: provider.value, among: providers)
            diagnostics.error(
                .configUnknownProvider, at: provider.location,
                "provider: '\(provider.value)' is not defined in providers\(hint)")
        }
        func check(name: Located<String>) {
            do throws(AccountError) {
                try ClaimRules.check(name: name.value)
            } catch {
                diagnostics.error(error.code, at: name.location, error.message)
            }
        }
        for source in accounts?.claimsFrom ?? [] {
            check(provider: source.provider)
            check(name: source.name)
            if source.name.value.hasSameBytes(as: "email") {
                diagnostics.error(
                    .claimsNameReserved, at: source.name.location,
                    "claim 'email' cannot be taken from a login: with another provider's email_verified it would look "
                        + "verified")
            }
        }
        for bootstrap in accounts?.bootstrap ?? [] {
            check(provider: bootstrap.provider)
            for (name, value) in bootstrap.claims {
                check(name: name)
                do throws(AccountError) {
                    try ClaimRules.check(value: value, of: name.value)
                } catch {
                    diagnostics.error(error.code, at: name.location, error.message)
                }
            }
        }
        self.init(
            sources: (accounts?.claimsFrom ?? []).map {
                Source(provider: $0.provider.value, claim: $0.claim.value, name: $0.name.value)
            },
            bootstraps: (accounts?.bootstrap ?? []).map { bootstrap in
                Bootstrap(
                    provider: bootstrap.provider.value, providerSubject: bootstrap.providerSubject.value,
                    claims: JSONObject(bootstrap.claims.map { ($0.name.value, $0.value) }))
            })
    }
}
