internal import MartletAccounts
internal import MartletAudit
internal import MartletConfig
internal import MartletCore
package import MartletIdentities
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Ends sessions, and reports each of them to the webhooks that get that.
struct SessionEnds: Sendable {
    /// How often the oldest sessions make room for a new one, which logins at the same time may take.
    private static let evictions = 16

    /// Why a session ends whose refresh token was used twice.
    static let refreshReuse = "refresh_reuse"

    private let setup: SignInSetup
    private let sessions: AccountSessions

    init(_ setup: SignInSetup) {
        self.setup = setup
        sessions = AccountSessions(setup)
    }

    /// Ends sessions, and reports them if a webhook gets that.
    ///
    /// A login in progress that may leave a session is only logged: the user's change is made, and the sessions have ended.
    /// - Throws: 503 if they have not ended yet.
    func end(_ end: SessionsEnd, of subject: String) async throws(Failure) {
        do throws(SessionError) {
            try await sessions.end(end, of: subject, reportedBy: setup.life, setup.logger)
        } catch {
            guard let unmarked = error.cause as? UnmarkedChange else { throw .session(error) }
            warn(unmarked.provider, error.code)
        }
    }

    /// Ends the session of a caller who logs out, or all of the subject's.
    func logOut(_ caller: Caller, everywhere: Bool) async throws(Failure) {
        let end = everywhere ? SessionsEnd(SessionsEnd.logoutAll) : SessionsEnd("logout", only: caller.session.id)
        try await self.end(end, of: caller.session.subject)
    }

    /// Marks a change for logins in progress.
    ///
    /// If the store fails, such a login keeps its session; the change is already made, and ending the existing sessions
    /// matters more.
    func mark(_ subject: String, _ provider: String) async {
        do throws(StoreError) { try await sessions.fence.mark(subject, provider: provider) } catch {
            warn(provider, error.code)
        }
    }

    /// The same for a user whose password has changed, with or without an account.
    func mark(user: String, _ provider: String) async {
        do throws(StoreError) { try await sessions.fence.mark(user: user, provider: provider) } catch {
            warn(provider, error.code)
        }
    }

    private func warn(_ provider: String, _ code: ErrorCode) {
        setup.logger.warning("storing a change mark failed", ("provider", provider), ("code", "\(code)"))
    }

    /// Ends the session that issued a refresh token.
    /// - Throws: 401 for a token that no live session has issued, 503 if it has not ended yet.
    func end(withRefreshToken token: Secret, _ request: LocalRequest) async throws(Failure) {
        try await fromSessions(
            await setup.sessions.endSession(
                withRefreshToken: token, reporting: report(as: "logout", detail: "token", request)))
    }

    /// Ends the session that a login replaces, which its client has named by the refresh token.
    ///
    /// A failure is only logged: the client forgets the token, and the session ends when it is idle.
    func endReplaced(_ token: Secret, _ request: LocalRequest) async {
        do throws(SessionError) {
            try await setup.sessions.endSession(withRefreshToken: token, reporting: report(as: "replaced", request))
        } catch {
            guard error.kind != .invalid else { return }
            setup.logger.warning(
                "a replaced session was not ended", ("code", "\(error.code)"), ("request_id", request.requestID))
        }
    }

    /// Creates a session; the subject's sessions beyond `max_per_subject` end, the oldest of the same app first.
    ///
    /// The store ends them itself, but does not know what to report. So where that is reported, they end first.
    /// - Parameter create: creates the session; its parameter is whether the store may end others.
    func issue<Issued: IssuedSession>(
        to subject: String, _ create: (_ evicting: Bool) async throws(SessionError) -> Issued
    ) async throws(Failure) -> Issued {
        let isReported = setup.life?.reportsEnds ?? false
        do throws(SessionError) {
            guard isReported else { return try await create(true) }
            for _ in 0..<Self.evictions {
                let surplus: SurplusSessions
                do throws(SessionError) { return try await create(false) } catch {
                    guard let found = error.cause as? SurplusSessions else { throw error }
                    surplus = found
                }
                for id in surplus.ids { try await evict(id, of: subject) }
            }
            setup.logger.error("end of sessions not reported", ("subject", subject), ("reason", "evicted"))
            return try await create(true)
        } catch {
            throw .session(error)
        }
    }

    private func evict(_ id: String, of subject: String) async throws(SessionError) {
        do throws(Failure) { try await end(SessionsEnd("evicted", only: id), of: subject) } catch {
            throw SessionError(error.reason, .unavailable)
        }
    }

    /// Reports a session that is about to end because of what was done with its refresh token; `nil` where nothing is
    /// reported or recorded.
    /// - Parameter detail: what the audit log calls it; the reason if absent.
    func report(as reason: String, detail: String? = nil, _ request: LocalRequest) -> EndReport? {
        let (audit, reportsEnds) = (SignInAudit(setup.audit), setup.life?.reportsEnds == true)
        guard audit.isOn || reportsEnds else { return nil }
        return { [self] session in
            let isTheft = reason == Self.refreshReuse
            audit.record(
                isTheft ? .refreshTheft : .revoke, request, isTheft ? .rejected : .success,
                detail: isTheft ? nil : detail ?? reason,
                caller: NamedCaller(subject: session.subject, sessionID: session.id))
            guard reportsEnds else { return }
            // If this fails, the session ends all the same.
            try? await end(SessionsEnd(reason, only: session.id), of: session.subject)
        }
    }
}

extension AccountSessions {
    /// - Parameter setup: the stores and providers of the endpoints.
    package init(_ setup: SignInSetup) {
        self.init(
            setup.sessions, fence: LoginFence(store: setup.store, keyPrefix: setup.storeKeyPrefix),
            providers: setup.providers.map(\.name), invalidateDecisions: setup.invalidateDecisions)
    }
}
