package import MartletAccounts
internal import MartletCore
internal import MartletIdentities
internal import MartletProvider
package import MartletSession

/// Ends the sessions of accounts, with the results that loops have cached and the logins in progress.
package struct AccountSessions: AccountSessionEnding {
    private let sessions: any SessionStoring
    private let fence: LoginFence
    /// The names of all providers.
    private let providers: [String]
    private let logger: Logger
    private let invalidateDecisions: @Sendable (_ subject: String) async -> Void

    /// - Parameter setup: the stores and providers of the endpoints.
    package init(_ setup: SignInSetup) {
        sessions = setup.sessions
        fence = LoginFence(store: setup.store, keyPrefix: setup.storeKeyPrefix)
        providers = setup.providers.map(\.name)
        logger = setup.logger
        invalidateDecisions = setup.invalidateDecisions
    }

    /// The live sessions of an account.
    package func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage {
        try await sessions.page(of: subject, from: start)
    }

    /// Ends sessions, in all loops of all instances.
    package func end(_ end: SessionsEnd, of subject: String) async throws(SessionError) {
        if let only = end.only {
            _ = try await sessions.end(SessionReference(subject: subject, id: only))
            return
        }
        if end.endsLogins {
            await invalidateDecisions(subject)
            for provider in end.provider.map({ [$0] }) ?? providers { await mark(subject, provider) }
        }
        try await sessions.endAll(
            subject: subject, provider: end.provider,
            except: end.except.map { SessionReference(subject: subject, id: $0) })
    }

    /// Marks a change for logins in progress.
    ///
    /// If the store fails, such a login keeps its session; the change is already made, and ending the existing sessions
    /// matters more.
    func mark(_ subject: String, _ provider: String) async {
        await storing(provider) { () async throws(StoreError) in try await fence.mark(subject, provider: provider) }
    }

    /// The same for a user whose password has changed, with or without an account.
    func mark(user: String, _ provider: String) async {
        await storing(provider) { () async throws(StoreError) in try await fence.mark(user: user, provider: provider) }
    }

    private func storing(_ provider: String, _ body: () async throws(StoreError) -> Void) async {
        do throws(StoreError) { try await body() } catch {
            logger.warning("storing a change mark failed", ("provider", provider), ("code", "\(error.code)"))
        }
    }
}
