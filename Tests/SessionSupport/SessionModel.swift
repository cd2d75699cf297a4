import MartletCore
import MartletSession
import MartletTesting

/// What the contract says about sessions, in the plainest words: no key, no store, one thing after another.
///
/// Tokens are numbers here; the history knows which token of the store each stands for.
struct SessionModel {
    struct Session {
        let subject: String
        let provider: String
        let created: Int64
        let ends: Int64
        var lastSeen: Int64
        var isEnded = false
        /// The one refresh token that makes a new pair.
        var current: Int
        /// The ends of access tokens.
        var access: [Int: Int64]
        /// Refresh tokens that were used: what they got, and until when they get it again.
        var spent: [Int: (pair: Pair, graceEnd: Int64)] = [:]
    }

    struct Pair: Equatable {
        let access: Int
        let refresh: Int
        let accessExpiry: Int64
    }

    enum Outcome: Equatable {
        case refused(ErrorCode)
        case pair(Pair)
    }

    let policy: SessionPolicy
    var sessions: [Session] = []
    private var tokens = 0

    init(_ policy: SessionPolicy) { self.policy = policy }

    private var idle: Int64 { policy.idleTimeout.wholeMilliseconds }

    private mutating func token() -> Int {
        tokens += 1
        return tokens
    }

    func isLive(_ session: Session, at now: Int64) -> Bool {
        !session.isEnded && now < session.ends && now < session.lastSeen + idle
    }

    /// The live sessions of a subject, oldest first.
    func live(_ subject: String, at now: Int64) -> [Int] {
        sessions.indices.filter { sessions[$0].subject == subject && isLive(sessions[$0], at: now) }
    }

    /// - Returns: the sessions that end for it.
    mutating func login(_ subject: String, _ provider: String, at now: Int64) -> (pair: Pair, ended: [Int]) {
        let live = live(subject, at: now)
        // Those of the same app first.
        let ordered =
            live.filter { sessions[$0].provider == provider } + live.filter { sessions[$0].provider != provider }
        let ended = Array(ordered.prefix(max(live.count + 1 - policy.maximumPerSubject, 0)))
        for index in ended { sessions[index].isEnded = true }
        let ends = now + policy.refreshTTL.wholeMilliseconds
        let pair = newPair(ends: ends, at: now)
        sessions.append(
            Session(
                subject: subject, provider: provider, created: now, ends: ends, lastSeen: now, current: pair.refresh,
                access: [pair.access: pair.accessExpiry]))
        return (pair, ended)
    }

    /// - Returns: why the token is rejected, `nil` if it is not.
    mutating func verify(_ token: Int, of index: Int, at now: Int64) -> ErrorCode? {
        guard isLive(sessions[index], at: now) else { return .sessionUnknown }
        // What has ended is forgotten by the next refresh; then it is a token that the session does not know.
        guard let expiry = sessions[index].access[token] else { return .sessionTokenUnknown }
        guard now < expiry else { return .sessionTokenExpired }
        note(index, at: now)
        return nil
    }

    mutating func refresh(_ token: Int, of index: Int, at now: Int64) -> Outcome {
        guard isLive(sessions[index], at: now) else { return .refused(.sessionUnknown) }
        if token == sessions[index].current { return rotate(index, at: now) }
        guard let spent = sessions[index].spent[token], now < spent.graceEnd else {
            sessions[index].isEnded = true
            return .refused(.sessionTokenReused)
        }
        note(index, at: now)
        return .pair(spent.pair)
    }

    private mutating func rotate(_ index: Int, at now: Int64) -> Outcome {
        let grace = policy.refreshReuseGrace.wholeMilliseconds
        let graces = sessions[index].spent.values.count { now < $0.graceEnd }
        let accesses = sessions[index].access.values.count { now < $0 }
        guard accesses < 64, grace == 0 || graces < 16 else { return .refused(.sessionThrottled) }
        let pair = newPair(ends: sessions[index].ends, at: now)
        sessions[index].access = sessions[index].access.filter { now < $0.value }
        sessions[index].access[pair.access] = pair.accessExpiry
        sessions[index].spent[sessions[index].current] = (pair, now + grace)
        sessions[index].current = pair.refresh
        sessions[index].lastSeen = now
        return .pair(pair)
    }

    private mutating func newPair(ends: Int64, at now: Int64) -> Pair {
        Pair(
            access: token(), refresh: token(), accessExpiry: min(now + policy.accessTTL.wholeMilliseconds, ends))
    }

    /// A use is noted when the last note is older than a minute, or than a twentieth of the idle timeout.
    private mutating func note(_ index: Int, at now: Int64) {
        if now > sessions[index].lastSeen + min(60_000, idle / 20) { sessions[index].lastSeen = now }
    }

    /// - Returns: those that end.
    mutating func end(_ subject: String, at now: Int64, where isChosen: (Int) -> Bool) -> [Int] {
        let ended = live(subject, at: now).filter(isChosen)
        for index in ended { sessions[index].isEnded = true }
        return ended
    }
}
