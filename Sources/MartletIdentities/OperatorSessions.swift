package import MartletAccounts
package import MartletCore
internal import MartletIO
package import MartletJSON
package import MartletSession

/// The sessions of all subjects, as operators list and end them: at a running gateway, and by a command on its stores.
package struct OperatorSessions: Sendable {
    /// The reason of events.
    private static let reason = "admin"

    private let sessions: AccountSessions
    private let life: IdentityLife?
    private let accounts: AccountStore?
    private let logger: Logger

    /// - Parameters:
    ///   - life: reports what ends; `nil` where nothing is reported.
    ///   - accounts: `nil` without accounts.
    package init(_ sessions: AccountSessions, life: IdentityLife?, accounts: AccountStore?, logger: Logger) {
        self.sessions = sessions
        self.life = life
        self.accounts = accounts
        self.logger = logger
    }

    /// The live sessions of a subject, newest first, as entries of a list; empty for an unknown subject.
    package func entries(of subject: String) async throws(SessionError) -> [JSONObject] {
        var entries: [JSONObject] = []
        try await sessions.store.forEachSession(of: subject) { session in
            entries.append(session.entry)
            return true
        }
        return entries
    }

    /// The number of live sessions of a subject.
    package func count(of subject: String) async throws(SessionError) -> Int {
        try await entries(of: subject).count
    }

    /// Ends one session; returns when this instance rejects it and the others have been notified.
    /// - Parameter subject: whose it is; `nil` looks for it, and reports its end to no webhook, because only its subject
    ///   can be reported.
    /// - Returns: `false` if there is no such session.
    package func end(_ id: String, of subject: String?) async throws(SessionError) -> Bool {
        if let subject {
            guard try await sessions.store.isLive(SessionReference(subject: subject, id: id)) else { return false }
            try await sessions.end(SessionsEnd(Self.reason, only: id), of: subject, reportedBy: life, logger)
        } else {
            guard try await sessions.store.end(sessionID: id) else { return false }
            if life?.reportsEnds == true {
                logger.warning("end of sessions not reported", ("session_id", id), ("reason", "unknown_subject"))
            }
        }
        logger.info("session ended by an operator", ("session_id", id), ("subject", subject ?? "-"))
        return true
    }

    /// Ends all sessions of a subject, and those that logins in progress are about to create.
    /// - Returns: `false` for a subject that has neither sessions nor an account.
    package func endAll(of subject: String) async throws(SessionError) -> Bool {
        if try await count(of: subject) == 0 {
            // A login in progress of an account is about to create one.
            do throws(AccountError) {
                guard try await accounts?.account(subject) != nil else { return false }
            } catch {
                throw SessionError(error.code, .unavailable, cause: error)
            }
        }
        try await sessions.end(SessionsEnd(Self.reason), of: subject, reportedBy: life, logger)
        logger.info("sessions ended by an operator", ("subject", subject))
        return true
    }
}

extension SessionSummary {
    /// The entry in lists for operators.
    package var entry: JSONObject {
        var entry: JSONObject = [
            "session_id": .string(id),
            "provider": .string(provider),
            "created_at": .integer(createdAt.seconds),
            "last_seen_at": .integer(lastSeenAt.seconds),
            "expires_at": .integer(expiresAt.seconds),
        ]
        if isBound { entry["bound"] = true }
        if let name = client.deviceName { entry["device_name"] = .string(name) }
        if let agent = client.userAgent { entry["user_agent"] = .string(agent) }
        if !client.address.isEmpty { entry["address"] = .string(SocketEndpoint.text(of: client.address)) }
        if !lastAddress.isEmpty { entry["last_address"] = .string(SocketEndpoint.text(of: lastAddress)) }
        return entry
    }
}
