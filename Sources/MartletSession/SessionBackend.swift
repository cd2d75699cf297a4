package import MartletCore

/// The rules and the instant that a step of a session goes by.
package struct SessionMoment: Sendable {
    /// The gateway's wall clock in milliseconds.
    let now: Int64
    /// A session that was not used for so long has ended.
    let idle: Int64
    /// How old the note of the last use may be before it is written anew.
    let slack: Int64

    /// The same for a look that leaves no trace: no note of the last use is ever old enough to be written anew.
    var leavingLastUse: SessionMoment { SessionMoment(now: now, idle: idle, slack: .max) }

    func isLive(ends: Int64, lastSeen: Int64) -> Bool {
        now < ends && now < lastSeen.later(by: idle)
    }

    /// Longer than any lifetime that can be configured.
    private static let longestSession: Int64 = 3_660 * 86_400_000

    /// Whether a session of this gateway can have been made, used or be about to end then, in milliseconds.
    ///
    /// Whoever can write into the store can seal a session of their own making: its numbers are input.
    func isPlausible(_ instant: Int64) -> Bool { (0...now.later(by: Self.longestSession)).contains(instant) }

    /// Whether a use at this instant is worth a write.
    func isWorthNoting(since lastSeen: Int64) -> Bool { now > lastSeen.later(by: slack) }
}

/// A session's record key, wrapped for one access token.
struct AccessWrap: Sendable {
    /// Which token's.
    let mark: [UInt8]
    let expiry: Int64
    let sealed: [UInt8]
}

/// A session to be filed.
package struct NewSession: Sendable {
    let subject: SubjectPlace
    let place: SessionPlace
    let created: Int64
    let ends: Int64
    let record: [UInt8]
    let listing: [UInt8]
    let providerMark: [UInt8]
    let verifier: [UInt8]
    let refreshWrap: [UInt8]
    let access: AccessWrap
    /// Where the login came from, as ``AddressNote`` has it.
    let note: [UInt8]
    /// How many live sessions the subject may have, this one among them.
    let limit: Int
}

/// What the store has for an access token.
package enum AccessReading: Sendable {
    /// There is no such session, or it has ended.
    case gone
    /// The session has no such access token.
    case unknown
    /// The token has ended, the session has not.
    case expired
    case found(record: [UInt8], wrap: [UInt8], expiry: Int64)
}

/// What a refresh has to know.
package struct RefreshReading: Sendable {
    let ends: Int64
    let lastSeen: Int64
    let generation: Int64
    let record: [UInt8]
    let verifier: [UInt8]
    let refreshWrap: [UInt8]
    /// What this token got when it was used, if that was within the grace.
    let grace: [UInt8]?
}

/// The exchange of a session's refresh token for another.
package struct SessionRotation: Sendable {
    /// How many may happen within one grace.
    static let maximumGraces = 16
    /// How many access tokens of a session may be good at once.
    static let maximumAccessTokens = 64

    struct Grace: Sendable {
        let mark: [UInt8]
        let end: Int64
        let sealed: [UInt8]
    }

    /// The generation that was read; another one means that somebody was faster.
    let generation: Int64
    let refreshWrap: [UInt8]
    let access: AccessWrap
    /// `nil` where there is no grace.
    let grace: Grace?
    /// Where it came from, as ``AddressNote`` has it.
    let note: [UInt8]

    /// What came of it.
    package enum Outcome: Sendable, Equatable { case done, lost, gone, throttled }
}

/// A session of a subject's list.
package struct ListedSession: Sendable {
    /// As many as a list has at most: what Redis answers at once is bounded.
    static let maximumCount = 500

    let filing: [UInt8]
    let listing: [UInt8]
    let ends: Int64
    let lastSeen: Int64
    /// Where it was last used from, as ``AddressNote`` has it; empty where nobody knows.
    let note: [UInt8]
}

/// Which of a subject's sessions to end; what is `nil` chooses all.
package struct SessionSelection: Sendable {
    /// The digits of one session's id.
    var id: [UInt8]?
    var providerMark: [UInt8]?
    /// The digits of the id of one that stays.
    var kept: [UInt8]?

    func contains(filing: [UInt8], providerMark mark: [UInt8]) -> Bool {
        let digits = filing.prefix(SessionPlace.idDigits)
        return id.map { digits.elementsEqual($0) } ?? true && providerMark.map { $0 == mark } ?? true
            && kept.map { !digits.elementsEqual($0) } ?? true
    }
}

/// Where sessions are kept: each call is one atomic step, whoever else is at it.
///
/// It holds sealed values, opaque names and numbers, and opens none of them. Steps that end sessions give back their numbers;
/// where several instances share the sessions, the step tells the others.
package protocol SessionBackend: Sendable {
    /// Files a session and ends the subject's oldest beyond the limit.
    func insert(_ session: NewSession, at moment: SessionMoment) async throws(StoreError) -> [UInt64]
    /// Reads what an access token needs and notes the use, and from where if that is somewhere else than before.
    func use(
        _ place: SessionPlace, mark: [UInt8], note: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> AccessReading
    /// Reads what a refresh token needs; `nil` for a session that has ended.
    func read(
        _ place: SessionPlace, mark: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> RefreshReading?
    /// Exchanges the refresh token if nobody was faster.
    func rotate(
        _ place: SessionPlace, _ rotation: SessionRotation, at moment: SessionMoment
    ) async throws(StoreError) -> SessionRotation.Outcome
    /// Notes a use, and from where if that is somewhere else than before.
    func touch(_ place: SessionPlace, note: [UInt8], at moment: SessionMoment) async throws(StoreError)
    /// Ends one session; `false` if there is none.
    func end(_ place: SessionPlace) async throws(StoreError) -> Bool
    /// The live sessions of a subject, newest first; the newest 500.
    func list(_ subject: SubjectPlace, at moment: SessionMoment) async throws(StoreError) -> [ListedSession]
    /// Ends those of a subject's live sessions that are chosen.
    func end(
        _ selection: SessionSelection, of subject: SubjectPlace, at moment: SessionMoment
    ) async throws(StoreError) -> [UInt64]
}
