package import MartletCore
package import MartletProvider
package import MartletSession
package import MartletTesting

/// Sessions that stay as they are, and a record of which were listed and ended.
package final class RecordedSessions: SessionStoring {
    package static let accessPrefix = "mat_"

    /// The sessions of every subject.
    private let live: [SessionSummary]
    private let outage: SessionError?
    /// The subjects whose sessions were listed.
    package let listed = Box<[String]>([])
    /// What was ended: `ses_1 of usr_1`, `ses_1 of anyone`, `all of usr_1`, `some of usr_1`.
    package let ended = Box<[String]>([])

    /// - Parameters:
    ///   - ids: of the sessions that every subject has, newest first.
    ///   - outage: the error of every call.
    package init(_ ids: [String] = [], outage: SessionError? = nil) {
        let time = UnixTime(seconds: 1)
        live = ids.map {
            SessionSummary(id: $0, provider: "apple", createdAt: time, lastSeenAt: time, expiresAt: time)
        }
        self.outage = outage
    }

    private func note(_ text: String, in record: Box<[String]>) throws(SessionError) {
        if let outage { throw outage }
        record.withLock { $0.append(text) }
    }

    package func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage {
        try note(subject, in: listed)
        return SessionPage(sessions: live, next: nil)
    }

    package func end(_ session: SessionReference) async throws(SessionError) -> Bool {
        try note("\(session.id) of \(session.subject)", in: ended)
        return live.contains { $0.id == session.id }
    }

    package func end(sessionID id: String) async throws(SessionError) -> Bool {
        try note("\(id) of anyone", in: ended)
        return live.contains { $0.id == id }
    }

    package func endAll(
        subject: String, provider: String?, except excluded: SessionReference?
    ) async throws(SessionError) {
        try note("\(provider == nil && excluded == nil ? "all" : "some") of \(subject)", in: ended)
    }

    // MARK: What no operator does

    package var findsMarks: Bool { false }

    package func verify(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession { throw .rejected("test.unused") }

    package func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession { throw .rejected("test.unused") }

    package func create(
        subject: String, provider: String, identity: Identity, client: SessionClient, evicting: Bool,
        mark: ChangeMark?
    ) async throws(SessionError) -> IssuedTokens { throw SessionError("test.unused", .invalid) }

    package func apply(_ claims: VersionedClaims, to subject: String) async throws(SessionError) -> Bool { true }

    package func refresh(
        _ token: Secret, provenBy key: RefreshKey, from address: [UInt8], reportingReuse reportReuse: EndReport?
    ) async throws(SessionError) -> IssuedTokens { throw SessionError("test.unused", .invalid) }

    package func endSession(withRefreshToken token: Secret, reporting report: EndReport?) async throws(SessionError) {
        throw SessionError("test.unused", .invalid)
    }

    package func renew(_ token: Credential, with proof: SessionProof) async throws(SessionError) -> SessionProof {
        throw SessionError("test.unused", .invalid)
    }
}
