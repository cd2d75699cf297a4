internal import MartletConfig
internal import MartletCore
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
    init(in store: SharedStore, _ blueprint: Blueprint, _ services: Services) {
        let backend = SessionStore(
            policy: SessionPolicy(blueprint.configuration.sessions), backend: store.sessions, clock: services.clock,
            onRevoked: { _ in }, onChanged: { _ in })
        self.init(
            sessions: backend, fence: LoginFence(store: store.values, keyPrefix: store.label.prefix),
            invalidateDecisions: { await store.notifyOthers($0) })
    }

    /// Ends every session of a subject, and those that logins in progress are about to create.
    /// - Parameter providers: of the account's identities.
    /// - Throws: exit code 69.
    func endAll(of subject: String, providers: [String]) async throws(StartError) {
        func failure(_ code: ErrorCode) -> StartError {
            StartError(
                code: code, message: "the change was made, but the sessions could not be ended: try again",
                exit: .unavailable)
        }
        // A login may have authenticated before the change and not have created its session yet.
        do throws(StoreError) {
            for provider in providers { try await fence?.mark(subject, provider: provider) }
        } catch {
            throw failure(error.code)
        }
        await invalidateDecisions(subject)
        do throws(SessionError) {
            try await sessions.endAll(subject: subject, provider: nil, except: nil)
        } catch {
            throw failure(error.code)
        }
    }
}
