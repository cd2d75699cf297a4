package import MartletCore

/// The time of an operation, with the timeouts that apply to it.
package struct SessionTime: Sendable {
    /// Unix time of the gateway in milliseconds.
    let now: Int64
    /// The idle timeout of a session in milliseconds.
    let idle: Int64
    /// How stale the stored last use may become before it is updated, in milliseconds.
    let slack: Int64

    /// The same time for a read-only lookup, which never updates the last use.
    var readOnly: SessionTime { SessionTime(now: now, idle: idle, slack: .max) }

    func isLive(ends: Int64, lastSeen: Int64) -> Bool {
        now < ends && now < lastSeen.later(by: idle)
    }

    /// Longer than any lifetime that can be configured.
    private static let longestSession: Int64 = 3_660 * 86_400_000

    /// Whether a stored timestamp, in milliseconds, is one that a gateway can have written.
    ///
    /// Anyone who can write to the store can forge a sealed session, so its numbers are untrusted input.
    func isPlausible(_ instant: Int64) -> Bool { (0...now.later(by: Self.longestSession)).contains(instant) }

    /// Whether the stored last use is stale enough to be updated.
    func shouldUpdateLastUse(since lastSeen: Int64) -> Bool { now > lastSeen.later(by: slack) }
}

/// The record key of a session, wrapped for one access token.
struct AccessWrap: Sendable {
    /// Identifies the token.
    let tokenHash: [UInt8]
    let expiry: Int64
    let sealed: [UInt8]
}

/// A session to insert.
package struct NewSession: Sendable {
    let subject: SubjectKey
    let sessionKey: SessionKey
    let created: Int64
    let ends: Int64
    let record: [UInt8]
    let listing: [UInt8]
    let providerHash: [UInt8]
    /// A keyed hash of the app that it was begun with: see ``SessionApplication``.
    let applicationHash: [UInt8]
    let verifier: [UInt8]
    let refreshWrap: [UInt8]
    let access: AccessWrap
    /// The address of the login, as ``SealedAddress``.
    let lastAddress: [UInt8]
    /// Who owns the session, as ``SessionSeal`` makes it for holders of a token; empty without accounts.
    let owner: [UInt8]
    /// The maximum number of live sessions of the subject, including this one.
    let limit: Int
    /// Whether the subject's sessions beyond the limit end, the oldest of the same app first; otherwise the session is
    /// not inserted.
    let evicts: Bool
    /// Where the mark of a change would be that overtook the login; `nil` if there can be none.
    let mark: ChangeMark?
    /// Whether the subject has an account, whose claims may be stored.
    let readsClaims: Bool
}

/// Where a change of an identity is marked, and the number of the last one before a login began.
package struct ChangeMark: Sendable {
    /// The key in the store, of the subject's hash tag.
    package let key: String
    /// Negative if the number could not be read: any mark counts then.
    package let number: Int

    package init(key: String, number: Int) { (self.key, self.number) = (key, number) }

    /// The key of a subject's marks, which has the hash tag of its sessions.
    /// - Parameter name: what is marked.
    package static func key(prefix: String, subject: String, name: String) -> String {
        "\(prefix){\(String(decoding: SubjectKey(subject).tagDigits, as: UTF8.self))}:f:\(name)"
    }

    /// A number as it is stored: behind a space, by which a script finds it behind the seal.
    package static func bytes(of number: Int) -> [UInt8] { Array(" \(number)".utf8) }

    /// The number of a stored mark; `nil` if it has another form.
    package static func number(in bytes: [UInt8]) -> Int? {
        bytes.first == 0x20 ? Int(String(decoding: bytes.dropFirst(), as: UTF8.self)) : nil
    }
}

/// The result of inserting a session.
package enum Insertion: Sendable, Equatable {
    /// The subject's sessions beyond the limit have ended. The version is that of the account's claims in the store, if
    /// they are stored.
    case inserted(ended: [UInt64], claimsVersion: Int64?)
    /// The subject has too many sessions, and none may end; these would, by their key hashes.
    case full(surplus: [[UInt8]])
    /// The identity has changed since the login began.
    case overtaken
}

/// The result of looking up an access token, or a cookie token that is not due.
package enum AccessLookup: Sendable {
    /// The session does not exist or has ended.
    case gone
    /// The session has no such access token; a cookie token is not current, or presented for the first time.
    case unknown
    /// The token has expired, but the session has not; a cookie token is due. The record is for logs.
    case expired(FoundSession)
    case found(FoundSession)
}

/// A session with an access token that has not expired.
package struct FoundSession: Sendable {
    let record: [UInt8]
    /// The record key, wrapped for the token.
    let wrap: [UInt8]
    let expiry: Int64
    /// The claims of the subject's account, as ``ClaimsSeal`` stores them; empty without any.
    var claims: [UInt8] = []
}

/// The claims of a subject's account, to be stored.
package struct StoredClaims: Sendable {
    let version: Int64
    /// As ``ClaimsSeal`` makes them.
    let bytes: [UInt8]
    /// When the last session of the subject ends, in milliseconds of Unix time.
    let ends: Int64

    /// The version in stored bytes; not authenticated.
    static func version(of bytes: [UInt8]) -> Int64? {
        bytes.firstIndex(of: 0x20).flatMap { Int64(String(decoding: bytes[..<$0], as: UTF8.self)) }
    }
}

/// The stored state that a refresh needs, or a cookie token that is not found by itself.
package struct RefreshLookup: Sendable {
    let ends: Int64
    let lastSeen: Int64
    let generation: Int64
    let record: [UInt8]
    let verifier: [UInt8]
    let refreshWrap: [UInt8]
    /// The sealed pair that this token was exchanged for, during its grace period; of a cookie token, a
    /// ``CookieGrace``.
    let grace: [UInt8]?
    /// When the grace period ends; not authenticated.
    let graceEnd: Int64?
    /// Who owns the session, sealed; empty if that is not stored.
    let owner: [UInt8]
    /// The claims of the subject's account, as ``ClaimsSeal`` stores them; empty without any.
    let claims: [UInt8]

    /// The version of these claims; `nil` without any.
    var claimsVersion: Int64? { StoredClaims.version(of: claims) }
}

/// The rotation of a session's refresh token or cookie token, or the first use of a cookie token.
package struct SessionRotation: Sendable {
    /// The maximum number of concurrent grace periods.
    static let maximumGraces = 16
    /// The maximum number of live access tokens of a session.
    static let maximumAccessTokens = 64

    struct Grace: Sendable {
        let tokenHash: [UInt8]
        var end: Int64
        let sealed: [UInt8]
    }

    /// What else changes if the session has a cookie token: all that is stored for access disappears.
    struct CookieChange: Sendable {
        /// Replaced tokens are accepted no longer than this.
        let graceEnd: Int64
        /// The record after a privilege change, which is published; `nil` without one.
        let record: [UInt8]?
    }

    /// The generation that was read; if the store has another one, a concurrent refresh won.
    let generation: Int64
    /// The wrapped key that was read: after a failover another chain of tokens may have reached the same generation.
    let replacedWrap: [UInt8]
    let refreshWrap: [UInt8]
    /// `nil` for a cookie token that has not been presented.
    let access: AccessWrap?
    /// `nil` without a grace period.
    let grace: Grace?
    /// The address of the refresh, as ``SealedAddress``.
    let lastAddress: [UInt8]
    /// `nil` for a refresh token.
    var cookie: CookieChange?
    /// The record of a session that is bound to a key from then on. Nothing that was cached is wrong then, because older
    /// access tokens stay a bearer's, so it is not published.
    var binding: RecordReplacement?

    /// The result of a rotation.
    package enum Outcome: Sendable, Equatable { case done, lost, gone, throttled }
}

/// The replacement of a session's sealed record.
package struct RecordReplacement: Sendable {
    /// The record that was read; if the store has another one, a concurrent replacement won.
    let expected: [UInt8]
    let record: [UInt8]

    /// The result of a replacement.
    package enum Outcome: Sendable, Equatable { case done, lost, gone }
}

/// A session in a subject's list.
package struct ListedSession: Sendable {
    /// The maximum length of a page, because the size of a Redis reply is bounded.
    static let maximumCount = 500

    let keyHash: [UInt8]
    let listing: [UInt8]
    let ends: Int64
    let lastSeen: Int64
    /// The address of the last use, as ``SealedAddress``; empty if unknown.
    let lastAddress: [UInt8]
    let position: SessionPosition
}

/// Selects which sessions of a subject to end; a criterion that is `nil` matches all.
package struct SessionSelection: Sendable {
    /// The digits of one session's ID.
    var id: [UInt8]?
    var providerHash: [UInt8]?
    /// The digits of the ID of a session that does not end.
    var excluded: [UInt8]?

    func contains(keyHash: [UInt8], providerHash hash: [UInt8]) -> Bool {
        id.map { keyHash == $0 } ?? true && providerHash.map { $0 == hash } ?? true
            && excluded.map { keyHash != $0 } ?? true
    }
}

/// Storage for sessions; each call is atomic.
///
/// It stores sealed values, opaque names and numbers, and decrypts nothing. Operations that end sessions return their
/// revocation IDs, and publish them if several instances share the store.
package protocol SessionBackend: Sendable {
    /// Whether ``insert(_:at:)`` looks for the mark of a change.
    var findsMarks: Bool { get }
    /// Inserts a session and ends the subject's sessions beyond the limit: the oldest of the same app, then the oldest.
    func insert(_ session: NewSession, at time: SessionTime) async throws(StoreError) -> Insertion
    /// Looks up the session of an access token, and updates its last use and its last address if they have changed.
    /// - Parameter readsClaims: whether the claims of the subject's account are read, too.
    func lookUpAndTouch(
        _ sessionKey: SessionKey, tokenHash: [UInt8], lastAddress: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> AccessLookup
    /// Stores the claims of a subject's account, unless newer ones are stored.
    /// - Returns: if they are newer than the stored ones, the revocation IDs of the subject's live sessions, which are
    ///   published like those of ended sessions; otherwise `nil`.
    func storeClaims(
        _ claims: StoredClaims, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64]?
    /// Reads the state that a refresh needs; `nil` if the session has ended.
    /// - Parameter readsClaims: whether the claims of the subject's account are read, too.
    func read(
        _ sessionKey: SessionKey, tokenHash: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> RefreshLookup?
    /// Rotates the refresh token or the cookie token, unless a concurrent rotation did so first.
    func rotate(
        _ sessionKey: SessionKey, _ rotation: SessionRotation, at time: SessionTime
    ) async throws(StoreError) -> SessionRotation.Outcome
    /// Replaces the record, unless a concurrent replacement did so first, and publishes the change.
    func replace(
        _ sessionKey: SessionKey, _ replacement: RecordReplacement, at time: SessionTime
    ) async throws(StoreError) -> RecordReplacement.Outcome
    /// Updates the last use, and the last address if it has changed.
    func touch(_ sessionKey: SessionKey, lastAddress: [UInt8], at time: SessionTime) async throws(StoreError)
    /// Ends one session; `false` if it does not exist.
    func end(_ sessionKey: SessionKey) async throws(StoreError) -> Bool
    /// Keeps a session that was not found from coming back: the store may have lost it, and get it from another
    /// instance, or from the server that is the next master.
    func endAbsent(_ sessionKey: SessionKey) async throws(StoreError)
    /// Finds a session by the digits of its ID, of whichever subject; it may have to look at every session.
    func find(_ digits: [UInt8]) async throws(StoreError) -> SessionKey?
    /// Lists 500 live sessions of a subject, newest first.
    /// - Parameter start: the last session of the page before; `nil` for the first page.
    func list(
        _ subject: SubjectKey, from start: SessionPosition?, at time: SessionTime
    ) async throws(StoreError) -> [ListedSession]
    /// Ends the selected live sessions of a subject.
    func end(
        _ selection: SessionSelection, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64]
}
