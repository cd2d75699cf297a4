internal import MartletCore
internal import MartletProvider

/// The budgets of unauthenticated requests, one per kind, so that a flood of one kind does not affect the others.
struct AttemptBudgets: Sendable {
    let unreadable = AttemptBudget(.unreadableRequests)
    let registrations = AttemptBudget(.registrations)
    /// Requests for a mail because of a forgotten password.
    let mailRequests = AttemptBudget(.mailRequests)
    let links = AttemptBudget(.linkUses)
    let profiles = AttemptBudget(.profileChanges)
    let nonces = AttemptBudget(.newNonces)
    let proofs = AttemptBudget(.loginProofs)
    let refreshes = AttemptBudget(.refreshes)
    let codes = AttemptBudget(.codeExchanges)
    let revocations = AttemptBudget(.revocations)
    let notifications = AttemptBudget(.notifications)
    private let logins: [String: AttemptBudget]
    /// For providers without a budget of their own.
    private let otherLogins = AttemptBudget(.logins)

    init(_ providers: [ProviderHandle]) {
        var logins: [String: AttemptBudget] = [:]
        for provider in providers {
            let limiting: (any FailureLimiting)? = provider.signingIn ?? provider.redirecting
            guard let limiting else { continue }
            logins[provider.name] = AttemptBudget(.logins, limiting.failureLimit)
        }
        self.logins = logins
    }

    /// The budget of logins and links with one provider.
    func logins(with provider: ProviderHandle) -> AttemptBudget { logins[provider.name] ?? otherLogins }
}
