internal import MartletCore
internal import MartletProvider

/// The budgets of what needs no proof, one for each kind: a flood of one kind is felt by that kind alone.
struct AttemptBudgets: Sendable {
    /// Nonces are answered from memory: what is bounded is the work.
    private static let nonceLimit = FailureLimit(attempts: 2000, window: .seconds(120))

    let nonces = AttemptBudget(nonceLimit)
    let refreshes = AttemptBudget(.standard)
    private let logins: [String: AttemptBudget]
    /// For a provider that was not there when the others were counted.
    private let otherLogins = AttemptBudget(.standard)

    init(_ providers: [ProviderHandle]) {
        var logins: [String: AttemptBudget] = [:]
        for provider in providers {
            guard let signingIn = provider.signingIn else { continue }
            logins[provider.name] = AttemptBudget(signingIn.failureLimit)
        }
        self.logins = logins
    }

    /// The budget of logins, and of proofs for a link, with one provider.
    func logins(with provider: ProviderHandle) -> AttemptBudget { logins[provider.name] ?? otherLogins }
}
