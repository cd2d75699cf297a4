internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletEvents
internal import MartletIdentities
internal import MartletProvider
internal import MartletServer
internal import MartletSession
internal import MartletSignIn

/// Ends the sessions of a subject at running gateways, for a command that has changed its account.
struct SessionEnding: Sendable {
    let sessions: any SessionStoring
    /// Prevents logins in progress from creating sessions.
    let fence: LoginFence?
    /// Has running gateways drop their cached decisions about a subject.
    let invalidateDecisions: @Sendable (_ subject: String) async -> Void
    /// Reports what ends; `nil` where no webhook gets that.
    var reporting: IdentityLife?

    /// What commands print when sessions are in the memory of a gateway.
    static let unshared =
        "note: sessions are not in a shared store; sessions of a running gateway stay valid until they expire"

    init(
        sessions: any SessionStoring, fence: LoginFence?,
        invalidateDecisions: @escaping @Sendable (_ subject: String) async -> Void
    ) {
        self.sessions = sessions
        self.fence = fence
        self.invalidateDecisions = invalidateDecisions
    }

    /// Ends the sessions of running gateways that share a store.
    /// - Parameter accounts: where ends are reported; `nil` without accounts.
    init(
        in store: SharedStore, _ accounts: AccountStore?, _ blueprint: Blueprint, _ services: Services
    ) {
        let backend = SessionStore(
            policy: SessionPolicy(blueprint.configuration.sessions), backend: store.sessions, clock: services.clock,
            seal: store.seal, onRevoked: { _ in }, onChanged: { _ in })
        self.init(
            sessions: backend, fence: LoginFence(store: store.values, keyPrefix: store.label.prefix),
            invalidateDecisions: { await store.notifyOthers($0) })
        guard let accounts, !blueprint.subscriptions.hooks(for: .sessionRevoked).isEmpty else { return }
        reporting = IdentityLife(
            store: accounts.life, runner: runner(in: store, accounts, blueprint, services), keys: nil,
            policy: DeletionPolicy(),
            clock: services.clock)
    }

    /// Ends sessions as jobs of an account store say. Other jobs are for gateways, which have providers.
    func runner(
        in store: SharedStore, _ accounts: AccountStore, _ blueprint: Blueprint, _ services: Services
    ) -> JobRunner {
        let sessions = CommandSessions(ending: self, providers: blueprint.providers.map(\.name))
        return JobRunner(
            JobRunner.Surroundings(
                store: accounts.life, leases: accounts, accounts: accounts, sessions: sessions,
                publishClaims: ClaimPublication(in: store, accounts, blueprint, services).publish, providers: [],
                keys: nil, policy: DeletionPolicy()),
            clock: services.clock, logger: services.logger)
    }

    /// Ends every session of a subject, and those that logins in progress are about to create.
    /// - Parameters:
    ///   - providers: of the account's identities.
    ///   - reason: why, for the event.
    /// - Throws: exit code 69.
    func endAll(of subject: String, providers: [String], reason: String) async throws(StartError) {
        do throws(SessionError) {
            try await end(SessionsEnd(reason), of: subject, providers: providers)
        } catch {
            throw StartError(
                code: error.code, message: "the change was made, but the sessions could not be ended: try again",
                exit: .unavailable)
        }
    }

    /// Prevents logins in progress of a user from creating sessions, with or without an account.
    /// - Throws: exit code 69.
    func endLogins(ofUser user: String, provider: String) async throws(StartError) {
        do throws(StoreError) {
            try await fence?.mark(user: user, provider: provider)
        } catch {
            throw StartError(
                code: error.code, message: "the change was made, but the sessions could not be ended: try again",
                exit: .unavailable)
        }
    }

    /// Ends sessions, and reports each of them if a webhook gets that.
    /// - Parameter providers: whose logins in progress leave no session.
    func end(_ end: SessionsEnd, of subject: String, providers: [String]) async throws(SessionError) {
        guard let reporting else {
            return try await CommandSessions(ending: self, providers: providers).end(end, of: subject)
        }
        let hasEnded: Bool
        do throws(AccountError) {
            hasEnded = try await reporting.end(end, of: subject)
        } catch {
            throw SessionError(error.code, .unavailable, cause: error)
        }
        guard hasEnded else { throw SessionError(.sessionStoreUnavailable, .unavailable) }
    }
}

/// The sessions of running gateways, for jobs that a command does.
struct CommandSessions: AccountSessionEnding {
    let ending: SessionEnding
    /// The names of all providers.
    let providers: [String]

    func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage {
        try await ending.sessions.page(of: subject, from: start)
    }

    func end(_ end: SessionsEnd, of subject: String) async throws(SessionError) {
        if let only = end.only {
            _ = try await ending.sessions.end(SessionReference(subject: subject, id: only))
            return
        }
        if end.endsLogins {
            // A login may have authenticated before the change and not have created its session yet.
            do throws(StoreError) {
                for provider in end.provider.map({ [$0] }) ?? providers {
                    try await ending.fence?.mark(subject, provider: provider)
                }
            } catch {
                throw SessionError(error.code, .unavailable, cause: error)
            }
            await ending.invalidateDecisions(subject)
        }
        try await ending.sessions.endAll(
            subject: subject, provider: end.provider,
            except: end.except.map { SessionReference(subject: subject, id: $0) })
    }
}
