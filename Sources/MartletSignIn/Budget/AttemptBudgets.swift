internal import MartletCore
internal import MartletProvider

/// The budgets of unauthenticated requests, one per kind, so that a flood of one kind does not affect the others.
struct AttemptBudgets: Sendable {
    /// Issuing nonces needs no store: the limit bounds the CPU work. A client needs about one for each login.
    private static let nonceLimit = FailureLimit(attempts: 2000, window: .seconds(120))

    /// Each costs a hash and may cause a mail, whatever its outcome.
    private static let selfServiceLimit = FailureLimit(attempts: 60, window: .seconds(600))

    /// Each change of a profile is sent to every instance.
    private static let profileLimit = FailureLimit(attempts: 300, window: .seconds(600))

    let registrations = AttemptBudget(selfServiceLimit)
    /// Requests for a mail because of a forgotten password.
    let mailRequests = AttemptBudget(selfServiceLimit)
    /// Uses of links.
    let links = AttemptBudget(selfServiceLimit)
    let profiles = AttemptBudget(profileLimit)
    let nonces = AttemptBudget(nonceLimit)
    /// Proofs of keys that hold, at logins and refreshes: each is marked in the store, whatever follows.
    let proofs = AttemptBudget(nonceLimit)
    let refreshes = AttemptBudget(.standard)
    /// Exchanges of codes.
    let codes = AttemptBudget(.standard)
    /// Only unknown tokens count.
    let revocations = AttemptBudget(.standard)
    /// Only what cannot be verified counts.
    let notifications = AttemptBudget(.standard)
    private let logins: [String: AttemptBudget]
    /// For providers without a budget of their own.
    private let otherLogins = AttemptBudget(.standard)

    init(_ providers: [ProviderHandle]) {
        var logins: [String: AttemptBudget] = [:]
        for provider in providers {
            let limiting: (any FailureLimiting)? = provider.signingIn ?? provider.redirecting
            guard let limiting else { continue }
            logins[provider.name] = AttemptBudget(limiting.failureLimit)
        }
        self.logins = logins
    }

    /// The budget of logins and links with one provider.
    func logins(with provider: ProviderHandle) -> AttemptBudget { logins[provider.name] ?? otherLogins }
}
