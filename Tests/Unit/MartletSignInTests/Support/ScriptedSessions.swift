import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting

@testable import MartletSession

/// Simple sessions in memory that can become unavailable from the n-th call on.
final class ScriptedSessions: SessionStoring {
    struct Entry: Sendable {
        let reference: SessionReference
        let provider: String
        var identity: Identity
        let createdAt: UnixTime
        let client: SessionClient
        var access: String
        var refresh: String
    }

    private struct State {
        var entries: [Entry] = []
        var serial = 0
        var callsLeft = Int.max
        var isThrottled = false
    }

    static let accessPrefix = "mat_"
    private let state = Box(State())
    private let clock: Clock

    init(clock: Clock) { self.clock = clock }

    var entries: [Entry] { state.value.entries }

    /// How many more calls succeed before the store is unavailable.
    var callsLeft: Int {
        get { state.value.callsLeft }
        set { state.withLock { $0.callsLeft = newValue } }
    }

    var isThrottled: Bool {
        get { state.value.isThrottled }
        set { state.withLock { $0.isThrottled = newValue } }
    }

    func verify(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession {
        guard !isUnavailable() else { throw .unavailable("session.unavailable", retryAfter: .seconds(2)) }
        let text = token.withBytes { String(decoding: $0, as: UTF8.self) }
        guard let entry = entries.first(where: { $0.access == text }) else { throw .rejected("session.unknown") }
        let identity = Identity(
            providerSubject: entry.identity.providerSubject, issuer: entry.identity.issuer,
            claims: entry.identity.claims, authTime: entry.identity.authTime, issuedAt: entry.createdAt,
            expiresAt: entry.createdAt.advanced(bySeconds: 900))
        let principal = Principal(
            identity: identity, provider: entry.provider, subject: entry.reference.subject,
            sessionID: entry.reference.id)
        return VerifiedSession(principal: principal, number: 1, cacheLifetime: .seconds(5))
    }

    func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession { try await verify(token, in: context) }

    var findsMarks: Bool { false }

    func create(
        subject: String, provider: String, identity: Identity, client: SessionClient, evicting: Bool,
        mark: ChangeMark?
    ) async throws(SessionError) -> IssuedTokens {
        try count()
        let entry = state.withLock { state in
            state.serial += 1
            let entry = Entry(
                reference: SessionReference(subject: subject, id: "ses_\(state.serial)"), provider: provider,
                identity: identity, createdAt: clock.unixTime, client: client, access: "mat_a\(state.serial)",
                refresh: "mrt_r\(state.serial)")
            state.entries.append(entry)
            return entry
        }
        return entry.tokens
    }

    func apply(_ claims: VersionedClaims, to subject: String) async throws(SessionError) -> Bool {
        try count()
        return true
    }

    func refresh(
        _ token: Secret, provenBy key: RefreshKey, from address: [UInt8], reportingReuse reportReuse: EndReport?
    ) async throws(SessionError) -> IssuedTokens {
        try count()
        if isThrottled { throw SessionError("session.throttled", .throttled) }
        let text = token.withBytes { String(decoding: $0, as: UTF8.self) }
        let entry: Entry? = state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.refresh == text }) else { return nil }
            state.serial += 1
            state.entries[index].access = "mat_a\(state.serial)"
            state.entries[index].refresh = "mrt_r\(state.serial)"
            return state.entries[index]
        }
        guard let entry else { throw SessionError("session.unknown", .invalid) }
        return entry.tokens
    }

    func endSession(withRefreshToken token: Secret, reporting report: EndReport?) async throws(SessionError) {
        try count()
        let text = token.withBytes { String(decoding: $0, as: UTF8.self) }
        guard let entry = entries.first(where: { $0.refresh == text }) else {
            throw SessionError("session.unknown", .invalid)
        }
        if let report { await report(entry.reference) }
        state.withLock { state in state.entries.removeAll { $0.reference == entry.reference } }
    }

    func renew(_ token: Credential, with proof: SessionProof) async throws(SessionError) -> SessionProof {
        try count()
        let text = token.withBytes { String(decoding: $0, as: UTF8.self) }
        let isKnown = state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.access == text }) else { return false }
            let old = state.entries[index].identity
            var claims = old.claims
            claims["acr"] = proof.acr.map { .string($0) }
            state.entries[index].identity = Identity(
                providerSubject: old.providerSubject, issuer: old.issuer, claims: claims, authTime: proof.authTime,
                issuedAt: old.issuedAt, expiresAt: old.expiresAt)
            return true
        }
        guard isKnown else { throw SessionError("session.unknown", .invalid) }
        return proof
    }

    func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage {
        try count()
        let sessions = entries.filter { $0.reference.subject == subject }.reversed().map { entry in
            SessionSummary(
                id: entry.reference.id, provider: entry.provider, createdAt: entry.createdAt,
                lastSeenAt: entry.createdAt, expiresAt: entry.createdAt.advanced(bySeconds: 5_184_000),
                client: entry.client, lastAddress: entry.client.address)
        }
        return SessionPage(sessions: sessions, next: nil)
    }

    func end(_ session: SessionReference) async throws(SessionError) -> Bool {
        try count()
        return state.withLock { state in
            let before = state.entries.count
            state.entries.removeAll { $0.reference == session }
            return state.entries.count < before
        }
    }

    func end(sessionID id: String) async throws(SessionError) -> Bool {
        guard let entry = entries.first(where: { $0.reference.id == id }) else {
            try count()
            return false
        }
        return try await end(entry.reference)
    }

    func endAll(subject: String, provider: String?, except kept: SessionReference?) async throws(SessionError) {
        try count()
        state.withLock { state in
            state.entries.removeAll { entry in
                entry.reference.subject == subject && entry.reference != kept
                    && (provider == nil || entry.provider == provider)
            }
        }
    }

    private func count() throws(SessionError) {
        if isUnavailable() { throw SessionError("session.unavailable", .unavailable) }
    }

    private func isUnavailable() -> Bool {
        state.withLock { state in
            state.callsLeft -= 1
            return state.callsLeft < 0
        }
    }
}

extension ScriptedSessions.Entry {
    fileprivate var tokens: IssuedTokens {
        IssuedTokens(
            accessToken: Secret(access), refreshToken: Secret(refresh), accessLifetime: .seconds(900),
            refreshLifetime: .seconds(5_184_000), session: reference, provider: provider,
            claimsVersion: nil, isBound: false)
    }
}
