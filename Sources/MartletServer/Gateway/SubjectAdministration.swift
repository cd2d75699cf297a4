internal import MartletAccounts
internal import MartletAdmin
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletRedis
internal import MartletSession
internal import MartletSignIn

/// Subjects that have accounts, for the admin listener of a running gateway.
struct SubjectAdministration: SubjectAdministering {
    let accounts: AccountStore
    let life: IdentityLife
    let sessions: OperatorSessions
    let providers: [ProviderHandle]
    let store: SharedStore
    let logger: Logger

    func report(on subject: String) async throws(AdminOutage) -> SubjectReport? {
        let account: AccountRecord
        let (identities, times): ([AccountIdentity], [LinkedIdentity])
        let states: [IdentityStatus]
        let claims: AccountClaims
        do throws(AccountError) {
            guard let found = try await accounts.account(subject) else { return nil }
            account = found
            identities = try await accounts.identities(of: subject)
            times = try await accounts.linkedIdentities(of: subject)
            states = try await life.states(of: subject)
            claims = try await accounts.claims(of: subject).claims
        } catch {
            throw AdminOutage(error)
        }
        var reported: [SubjectReport.Identity] = []
        for identity in identities {
            reported.append(
                SubjectReport.Identity(
                    provider: identity.provider, subjects: identity.subjects,
                    times: times.first { $0.provider.hasSameBytes(as: identity.provider) },
                    status: states.first { $0.provider.hasSameBytes(as: identity.provider) },
                    isEmailVerified: Self.flag(claims.identities[identity.provider]?["email_verified"]),
                    lock: await lock(of: identity)))
        }
        // What is known of the account matters more during an outage of the sessions' store.
        return SubjectReport(
            account: account, identities: reported, sessions: try? await sessions.count(of: subject))
    }

    private static func flag(_ value: JSONValue?) -> Bool? {
        if case .bool(let flag)? = value { flag } else { nil }
    }

    private func lock(of identity: AccountIdentity) async -> SubjectReport.Lock? {
        let provider = providers.first { $0.name.hasSameBytes(as: identity.provider) }
        guard let reporting = provider?.userUnlocking, let subject = identity.subjects.first else { return nil }
        do throws(AuthenticationError) {
            return try await reporting.throttling(of: subject).map { .throttled($0) } ?? .open
        } catch {
            return nil
        }
    }

    func setDisabled(_ subject: String, _ isDisabled: Bool) async throws(AdminOutage) -> Bool {
        let done = isDisabled ? "disabled" : "enabled"
        return try await change(subject, "account \(done) by an operator") { () async throws(AccountError) in
            try await life.setDisabled(subject, isDisabled, in: accounts)
        }
    }

    func delete(_ subject: String) async throws(AdminOutage) -> Bool {
        try await change(subject, "account deletion requested by an operator") { () async throws(AccountError) in
            try await life.requestDeletion(of: subject, reason: "operator")
        }
    }

    /// Nothing is changed while the other instances cannot be notified.
    /// - Parameter change: returns whether they have been.
    private func change(
        _ subject: String, _ event: String, _ change: () async throws(AccountError) -> Bool
    ) async throws(AdminOutage) -> Bool {
        if let code = store.outage { throw AdminOutage(code, "the store is unavailable; nothing was changed") }
        let isApplied: Bool
        do throws(AccountError) {
            isApplied = try await change()
        } catch {
            if error.kind == .notFound { return false }
            throw AdminOutage(error)
        }
        logger.info(event, ("subject", subject))
        guard isApplied else {
            throw AdminOutage(
                .sessionStoreUnavailable,
                "the account was changed; gateways apply it as soon as the store is available")
        }
        return true
    }
}

extension AdminOutage {
    fileprivate init(_ error: AccountError) { self.init(error.code, error.message) }
}
