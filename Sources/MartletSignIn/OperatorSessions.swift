internal import MartletAccounts
internal import MartletCore
internal import MartletIdentities
package import MartletJSON
package import MartletResponder
package import MartletSession

/// The sessions of all subjects, as operators list and end them.
package struct OperatorSessions: Sendable {
    /// The reason of events.
    private static let reason = "admin"

    private let setup: SignInSetup
    private let ends: SessionEnds

    /// - Parameter setup: the stores and providers of the endpoints.
    package init(_ setup: SignInSetup) {
        self.setup = setup
        ends = SessionEnds(setup, AccountSessions(setup))
    }

    /// The live sessions of a subject, newest first, as entries of a list.
    package func entries(of subject: String) async throws(SessionError) -> [JSONObject] {
        var entries: [JSONObject] = []
        try await setup.sessions.forEachSession(of: subject) { session in
            entries.append(session.entry)
            return true
        }
        return entries
    }

    /// The number of live sessions of a subject.
    package func count(of subject: String) async throws(SessionError) -> Int {
        var count = 0
        try await setup.sessions.forEachSession(of: subject) { _ in
            count += 1
            return true
        }
        return count
    }

    /// Ends one session; returns when this instance rejects it and the others have been notified.
    /// - Parameter subject: whose it is; `nil` looks for it, and reports its end to no webhook, because only its subject
    ///   can be reported.
    /// - Returns: `false` if there is no such session.
    package func end(_ id: String, of subject: String?) async throws(Failure) -> Bool {
        do throws(SessionError) {
            guard let subject else {
                let hasEnded = try await setup.sessions.end(sessionID: id)
                if hasEnded, setup.life?.reportsEnds == true {
                    setup.logger.warning(
                        "end of sessions not reported", ("session_id", id), ("reason", "unknown_subject"))
                }
                return hasEnded
            }
            guard try await setup.sessions.isLive(SessionReference(subject: subject, id: id)) else { return false }
        } catch {
            throw .session(error)
        }
        try await ends.end(SessionsEnd(Self.reason, only: id), of: subject ?? "")
        return true
    }

    /// Ends all sessions of a subject, and those that logins in progress are about to create.
    package func endAll(of subject: String) async throws(Failure) {
        try await ends.end(SessionsEnd(Self.reason), of: subject)
    }
}
