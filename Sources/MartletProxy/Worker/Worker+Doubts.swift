internal import MartletCore
internal import MartletProvider

/// Long exchanges whose credential is to be judged again: sessions whose end may have gone unheard, and whatever a new
/// configuration may judge otherwise (`Worker+Reload`).
///
/// Requests ask the store again when the loop's copy of a session is old, and after a gap in what other instances tell.
/// An exchange that is under way would not: so one that has become a long one keeps its token, and after a gap the store is
/// asked about it.
extension Worker {
    /// A token that a long exchange was let in by.
    struct HeldToken {
        enum State { case trusted, doubted, asked }

        let token: Secret
        /// One of the gateway's own.
        let isSession: Bool
        /// The route of a new configuration that it is to be judged for, or −1.
        var route = -1
        var state = State.trusted
        /// When the store may be asked, the next time.
        var askAt: Int64 = 0
    }

    /// How many tokens the store is asked about at a time.
    private static let questions = 256
    /// How long a store that cannot answer is left alone.
    private static let askAgain: Int64 = 1_000_000_000
    /// How long an answer may take.
    private static let patience: Int64 = 10_000_000_000

    /// Keeps the token of an exchange; one that was let in by a name and a password has none.
    mutating func holdToken(of exchange: Int32) {
        let (grant, number) = (exchanges[exchange].grant, exchanges[exchange].credentialNumber)
        exchanges[exchange].grant = -1
        guard number != 0, let token = unsafe grants.token(grant, if: { $0.number == number }) else { return }
        heldTokens[exchange] = HeldToken(token: Secret(unsafe Array(token)), isSession: unsafe OwnToken.isOne(token))
        exchanges[exchange].holdsToken = true
    }

    /// Something may have gone unheard; to be called before what is known of tokens is forgotten.
    mutating func doubtTokens() {
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive {
            if exchanges[exchange].grant >= 0 { holdToken(of: exchange) }
            guard exchanges[exchange].holdsToken, heldTokens[exchange]?.isSession == true else { continue }
            heldTokens[exchange]?.state = .doubted
            heldTokens[exchange]?.askAt = now
            hasDoubts = true
        }
    }

    /// Asks the store about tokens in doubt, some at a time.
    mutating func askAboutTokens() {
        guard hasDoubts else { return }
        var left = Worker.questions
        hasDoubts = false
        for (exchange, held) in heldTokens where held.state == .doubted {
            hasDoubts = true
            guard held.askAt <= now else { continue }
            guard left > 0 else { return }
            left -= 1
            if let judge = judge(of: held) { ask(judge, about: exchange, held.token) } else { markRevoked(exchange) }
        }
    }

    private mutating func ask(_ judge: Verifier.Judge, about exchange: Int32, _ token: Secret) {
        heldTokens[exchange]?.state = .asked
        let context = AuthenticationContext(
            now: MartletCore.UnixTime(seconds: unixTime),
            deadline: MonotonicTime(nanoseconds: now &+ Worker.patience), client: network(of: exchange))
        verifier.submit(
            Verifier.Job(
                credential: token.withBytes { Credential(bearer: $0) }, judge: judge,
                subjects: snapshot.signIn.subjects, context: context, mailbox: mailbox, exchange: exchange,
                generation: exchanges[exchange].generation,
                epoch: epoch))
    }

    /// The answer has come.
    mutating func judgedAgain(_ exchange: Int32, epoch judged: Int, _ verdict: Verdict) {
        guard exchanges[exchange].holdsToken, let held = heldTokens[exchange], held.state == .asked else { return }
        guard judged == epoch else { return askAgain(exchange, at: now) }
        switch verdict {
        case .success(let proven):
            guard held.route < 0 || mayGoOn(exchange, proven, route: held.route) else { return markRevoked(exchange) }
            heldTokens[exchange]?.state = .trusted
            heldTokens[exchange]?.route = -1
        case .failure(let error) where error.disposition == .unavailable || error.disposition == .throttled:
            askAgain(exchange, at: now &+ Worker.askAgain)
        case .failure: markRevoked(exchange)
        }
    }

    private mutating func askAgain(_ exchange: Int32, at time: Int64) {
        heldTokens[exchange]?.state = .doubted
        heldTokens[exchange]?.askAt = time
        hasDoubts = true
    }

    /// The exchange ends.
    mutating func dropToken(of exchange: Int32) { heldTokens[exchange] = nil }
}
