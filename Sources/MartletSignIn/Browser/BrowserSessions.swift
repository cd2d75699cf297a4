internal import MartletAccounts
internal import MartletBrowser
internal import MartletCore
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Begins and ends the sessions of browsers.
struct BrowserSessions: Sendable {
    let endpoints: SignInEndpoints
    let call: BrowserCall

    private var setup: BrowserSetup { call.setup }

    /// The live session of a cookie, which is not used by this; `nil` if there is none.
    /// - Throws: 503 when the store is unavailable.
    func current(_ cookie: Secret?) async throws(Failure) -> VerifiedSession? {
        guard let cookie else { return nil }
        do throws(AuthenticationError) {
            return try await setup.sessions.inspect(cookie.credential, in: endpoints.context(of: call.request))
        } catch {
            guard error.disposition == .rejected else { throw .authentication(error) }
            return nil
        }
    }

    /// Gives the browser a session, instead of the ones that it has.
    /// - Parameters:
    ///   - cookie: the session cookie that came with the request.
    ///   - previous: the session that the browser had when the sign-in began.
    /// - Returns: the `Set-Cookie` of the new session.
    func begin(
        _ new: NewSession, replacing cookie: Secret?, _ previous: SignInAttempt.Session? = nil
    ) async throws(Failure) -> String {
        let client = SessionClient(call.request)
        let issued = try await endpoints.creation.create(new, call.request) { evicting, mark throws(SessionError) in
            try await setup.sessions.createCookie(
                subject: new.subject, provider: new.provider, identity: new.identity, client: client,
                evicting: evicting, mark: mark)
        }
        await end(cookie, previous)
        return try setup.sessionCookie(issued.token)
    }

    /// Ends the sessions that another one replaces. A failure is only logged: the browser has lost their cookie, and
    /// they end when they are idle.
    private func end(_ cookie: Secret?, _ previous: SignInAttempt.Session?) async {
        let reason = "replaced"
        do throws(Failure) {
            if let previous {
                try await endpoints.ends.end(SessionsEnd(reason, only: previous.id), of: previous.subject)
            }
            guard let cookie else { return }
            do throws(SessionError) {
                try await setup.sessions.endSession(
                    withCookie: cookie, reporting: endpoints.ends.report(as: reason, call.request))
            } catch {
                guard error.kind != .invalid else { return }
                throw Failure.session(error)
            }
        } catch {
            endpoints.setup.logger.warning(
                "a replaced session was not ended", ("code", "\(error.reason)"),
                ("request_id", call.request.requestID))
        }
    }
}
