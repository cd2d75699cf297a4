import MartletCore
import MartletSession

/// What the decision page says about one session with a cookie, in the plainest words. Tokens are numbers.
struct CookieModel {
    enum Outcome: Equatable {
        case refused(ErrorCode)
        /// The token is accepted; the response sets another one, or none.
        case accepted(next: Int?)
    }

    private struct Replaced {
        /// Until when it is accepted; until the session's end, before the next one is used.
        let end: Int64
        /// The token that its holder gets, as long as that is the session's.
        let next: Int?
    }

    let subject: String
    private let policy: SessionPolicy
    private let ends: Int64
    private var lastSeen: Int64
    private(set) var isEnded = false
    private var current = 0
    /// `nil` until the token is first used.
    private var due: Int64?
    private var replaced: [Int: Replaced] = [:]

    init(_ policy: SessionPolicy, subject: String, at now: Int64) {
        self.policy = policy
        self.subject = subject
        ends = now + policy.refreshTTL.wholeMilliseconds
        lastSeen = now
        due = min(now + policy.accessTTL.wholeMilliseconds, ends)
    }

    private var idle: Int64 { policy.idleTimeout.wholeMilliseconds }
    private var grace: Int64 { policy.refreshReuseGrace.wholeMilliseconds }

    func isLive(at now: Int64) -> Bool { !isEnded && now < ends && now < lastSeen + idle }

    mutating func end() { isEnded = true }

    mutating func use(_ token: Int, at now: Int64) -> Outcome {
        guard isLive(at: now) else { return .refused(.sessionUnknown) }
        guard token == current else { return useReplaced(token, at: now) }
        guard let due else {
            due = min(now + policy.accessTTL.wholeMilliseconds, ends)
            shorten(to: now + grace)
            lastSeen = now
            return .accepted(next: nil)
        }
        guard now >= due else {
            note(at: now)
            return .accepted(next: nil)
        }
        guard replaced.values.count(where: { now < $0.end }) < 16 else { return .accepted(next: nil) }
        current += 1
        replaced[token] = Replaced(end: ends, next: current)
        self.due = nil
        lastSeen = now
        return .accepted(next: current)
    }

    private mutating func useReplaced(_ token: Int, at now: Int64) -> Outcome {
        guard let replaced = replaced[token], now < replaced.end else {
            isEnded = true
            return .refused(.sessionTokenReused)
        }
        note(at: now)
        return .accepted(next: replaced.next == current ? current : nil)
    }

    /// Verifies a token, and changes nothing.
    func inspect(_ token: Int, at now: Int64) -> Outcome {
        guard isLive(at: now) else { return .refused(.sessionUnknown) }
        guard token == current || replaced[token].map({ now < $0.end }) == true else {
            return .refused(.sessionTokenReused)
        }
        return .accepted(next: nil)
    }

    /// Replaces the session's token after a privilege change.
    mutating func reissue(_ token: Int, at now: Int64) -> Outcome {
        guard isLive(at: now) else { return .refused(.sessionUnknown) }
        if token != current {
            guard let replaced = replaced[token], now < replaced.end else {
                isEnded = true
                return .refused(.sessionTokenReused)
            }
            guard replaced.next == current else { return .refused(.sessionTokenExpired) }
        }
        if grace > 0 {
            guard replaced.values.count(where: { now < $0.end }) < 16 else { return .refused(.sessionThrottled) }
            replaced[current] = Replaced(end: now + grace, next: nil)
        }
        shorten(to: now + grace)
        current += 1
        due = nil
        lastSeen = now
        return .accepted(next: current)
    }

    private mutating func shorten(to latest: Int64) {
        replaced = replaced.mapValues { Replaced(end: min($0.end, latest), next: $0.next) }
    }

    private mutating func note(at now: Int64) {
        if now > lastSeen + min(60_000, idle / 20) { lastSeen = now }
    }
}
