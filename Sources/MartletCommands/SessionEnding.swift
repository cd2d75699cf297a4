internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletEvents
internal import MartletIdentities
internal import MartletProvider
internal import MartletServer
internal import MartletSession

/// Ends the sessions of a subject at running gateways, for a command that has changed its account.
struct SessionEnding: Sendable {
    let sessions: AccountSessions
    /// Reports what ends; `nil` where no webhook gets that.
    var life: IdentityLife?
    let logger: Logger

    /// What commands print when sessions are in the memory of a gateway.
    static let unshared =
        "note: sessions are not in a shared store; sessions of a running gateway stay valid until they expire"

    /// - Parameter sessions: those of running gateways.
    init(_ sessions: AccountSessions, logger: Logger) {
        self.sessions = sessions
        self.logger = logger
    }

    /// Ends the sessions of running gateways that share a store.
    /// - Parameter accounts: where ends are reported; `nil` without accounts.
    init(
        in store: SharedStore, _ accounts: AccountStore?, _ blueprint: Blueprint, _ services: Services
    ) {
        self.init(
            AccountSessions(
                SessionStore(in: store, blueprint, services, readsClaims: false),
                fence: LoginFence(store: store.values, keyPrefix: store.label.prefix),
                providers: blueprint.providers.map(\.name), invalidateDecisions: { await store.notifyOthers($0) }),
            logger: services.logger)
        guard let accounts, !blueprint.subscriptions.hooks(for: .sessionRevoked).isEmpty else { return }
        life = IdentityLife(
            store: accounts.life, runner: runner(in: store, accounts, blueprint, services), keys: nil,
            policy: DeletionPolicy(), clock: services.clock)
    }

    /// Ends sessions as jobs of an account store say. Other jobs are for gateways, which have providers.
    func runner(
        in store: SharedStore, _ accounts: AccountStore, _ blueprint: Blueprint, _ services: Services
    ) -> JobRunner {
        let publisher = ClaimPublisher(in: store, accounts, blueprint, services)
        return JobRunner(
            JobRunner.Surroundings(
                store: accounts.life, leases: accounts, accounts: accounts, sessions: sessions,
                publishClaims: { subject throws(ClaimPublisher.PublicationError) in
                    try await publisher.publish(subject)
                }, providers: [], keys: nil, policy: DeletionPolicy()),
            clock: services.clock, logger: services.logger)
    }

    /// Ends every session of a subject, and those that logins in progress are about to create.
    /// - Parameter reason: why, for the event.
    /// - Throws: exit code 69.
    func endAll(of subject: String, reason: String) async throws(StartError) {
        do throws(SessionError) {
            try await sessions.end(SessionsEnd(reason), of: subject, reportedBy: life, logger)
        } catch {
            throw Self.failed(error.code)
        }
    }

    /// Prevents logins in progress of a user from creating sessions, with or without an account.
    /// - Throws: exit code 69.
    func endLogins(ofUser user: String, provider: String) async throws(StartError) {
        do throws(StoreError) {
            try await sessions.fence.mark(user: user, provider: provider)
        } catch {
            throw Self.failed(error.code)
        }
    }

    private static func failed(_ code: ErrorCode) -> StartError {
        StartError(
            code: code, message: "the change was made, but the sessions could not be ended: try again",
            exit: .unavailable)
    }
}

extension SessionStore {
    /// The sessions of running gateways that share a store.
    fileprivate convenience init(
        in store: SharedStore, _ blueprint: Blueprint, _ services: Services, readsClaims: Bool
    ) {
        self.init(
            policy: SessionPolicy(blueprint.configuration.sessions), backend: store.sessions, clock: services.clock,
            readsClaims: readsClaims, seal: store.seal, onRevoked: { _ in }, onChanged: { _ in })
    }
}

extension ClaimPublisher {
    /// Makes running gateways that share a store apply the claims of an account.
    init(in store: SharedStore, _ accounts: AccountStore, _ blueprint: Blueprint, _ services: Services) {
        self.init(
            accounts: accounts, sessions: SessionStore(in: store, blueprint, services, readsClaims: true)
        ) { await store.notifyOthersOfChange($0, isDisabled: $1) }
    }
}
