package import MartletAccounts
package import MartletCore
internal import MartletCrypto
package import MartletEvents
package import MartletJSON
package import MartletProvider

/// What the endpoints do about identities beyond their login: it records their grants and states, applies
/// notifications, and begins deletions.
package struct IdentityLife: Sendable {
    package let store: IdentityLifeStore
    private let runner: JobRunner
    /// `nil` if no provider returns grants.
    private let keys: GrantKeys?
    private let policy: DeletionPolicy
    private let clock: Clock

    package init(
        store: IdentityLifeStore, runner: JobRunner, keys: GrantKeys?, policy: DeletionPolicy, clock: Clock
    ) {
        self.store = store
        self.runner = runner
        self.keys = keys
        self.policy = policy
        self.clock = clock
    }

    /// Records a login of an identity whose issuer can say more about it later.
    /// - Returns: what has changed; `nil` if the credential was issued before the identity was revoked.
    @discardableResult
    package func confirm(
        _ signIn: SignIn, _ identity: AccountIdentity, by provider: ProviderHandle
    ) async throws(AccountError) -> LoginConfirmation? {
        guard provider.tracksIdentities else { return .unchanged }
        var sealed: SealedGrant?
        if let grant = signIn.grant, let keys {
            do throws(CryptoError) {
                sealed = try keys.seal(grant, of: identity.subjects.first ?? "", provider: provider.name)
            } catch {
                throw AccountError("accounts.failed", .unavailable, "no random bytes available")
            }
        }
        let schedule = sealed == nil ? nil : provider.refreshing?.checkSchedule
        let now = clock.unixTime
        return try await store.confirm(
            ConfirmedLogin(
                identity: identity, issuedAt: signIn.provedAt(now),
                confirmedAt: signIn.grant == nil ? signIn.identity.issuedAt : now, now: now, grant: sealed,
                nextCheck: schedule.map { GrantChecker.firstCheck($0, at: clock.unixMilliseconds) }, deletion: policy))
    }

    /// Takes a pending deletion back.
    package func restore(_ subject: String) async throws(AccountError) {
        _ = try await store.restore(subject, at: clock.unixMilliseconds)
    }

    /// Files a notification and does what follows from it.
    package func receive(
        _ notification: ProviderNotification, from provider: ProviderHandle
    ) async throws(AccountError) -> FiledNotification {
        let source = NotificationSource(provider: provider.name, kind: provider.kind.rawValue)
        let filed = try await store.file(notification, from: source, deletion: policy, at: clock.unixMilliseconds)
        // What fails is in the store, and done later: the notification counts as received.
        await runner.perform(filed.jobs)
        return filed
    }

    /// Begins the deletion of an account: its sessions end before this returns, if the session store is available.
    /// - Parameter reason: why, for the event.
    /// - Returns: whether its sessions have ended; otherwise they end when the session store is available.
    @discardableResult
    package func requestDeletion(of subject: String, reason: String) async throws(AccountError) -> Bool {
        let jobs = try await store.requestDeletion(of: subject, reason: reason, policy, at: clock.unixMilliseconds)
        let hasEnded = await runner.perform(jobs.filter { $0.kind == .endSessions })
        await runner.perform(jobs.filter { $0.kind != .endSessions })
        return hasEnded
    }

    /// Disables an account, or enables it; returns when this instance applies it and the others have been notified.
    /// - Returns: whether that has succeeded; otherwise it is done when the session store is available.
    package func setDisabled(
        _ subject: String, _ isDisabled: Bool, in accounts: AccountStore
    ) async throws(AccountError) -> Bool {
        await runner.perform(try await accounts.setDisabled(account: subject, at: isDisabled ? clock.unixTime : nil))
    }

    /// Whether ends of sessions are reported to a webhook.
    package var reportsEnds: Bool { store.isSubscribed(to: .sessionRevoked) }

    /// Ends sessions and reports each of them.
    /// - Returns: whether they have ended; otherwise they end when the session store is available.
    package func end(_ end: SessionsEnd, of subject: String) async throws(AccountError) -> Bool {
        await runner.perform(try await store.beginEnd(end, of: subject, at: clock.unixMilliseconds))
    }

    /// Does what a change of an account has left to be done.
    /// - Returns: whether it is done; otherwise it is done when the session store is available.
    package func perform(_ jobs: [AccountJob]) async -> Bool { await runner.perform(jobs) }

    /// Reports a login to the webhooks that ask for logins.
    /// - Parameter subject: the account's, or the provider's name for a login that was rejected.
    package func report(_ type: EventType, of subject: String, data: JSONObject) async throws(AccountError) {
        guard store.isSubscribed(to: type) else { return }
        try await store.record(type, of: subject, data: data, at: clock.unixMilliseconds)
    }

    /// The states of an account's identities.
    package func states(of subject: String) async throws(AccountError) -> [IdentityStatus] {
        try await store.identityStates(of: subject)
    }
}

extension ProviderHandle {
    /// Whether its issuer says more about an identity than a login does.
    package var tracksIdentities: Bool { notifying != nil || refreshing != nil || revoking != nil }
}
