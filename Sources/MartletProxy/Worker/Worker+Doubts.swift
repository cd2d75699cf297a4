internal import MartletCore
internal import MartletProvider

/// Long exchanges of sessions whose end may have gone unheard.
///
/// Requests ask the store again when the loop's copy of a session is old, and after a gap in what other instances tell.
/// An exchange that is under way would not: so one that has become a long one keeps its token, and after a gap the store is
/// asked about it.
extension Worker {
    /// A token that a long exchange was let in by.
    struct HeldToken {
        enum State { case trusted, doubted, asked }

        let token: Secret
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

    /// Keeps the token of an exchange, if it is a session's.
    mutating func holdToken(of exchange: Int32) {
        let (grant, number) = (exchanges[exchange].grant, exchanges[exchange].credentialNumber)
        exchanges[exchange].grant = -1
        guard number != 0, let token = unsafe grants.token(grant, if: { $0.number == number }),
            unsafe OwnToken.isOne(token)
        else { return }
        heldTokens[exchange] = HeldToken(token: Secret(unsafe Array(token)))
        exchanges[exchange].holdsToken = true
    }

    /// Something may have gone unheard; to be called before what is known of tokens is forgotten.
    mutating func doubtTokens() {
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive {
            if exchanges[exchange].grant >= 0 { holdToken(of: exchange) }
            guard exchanges[exchange].holdsToken else { continue }
            heldTokens[exchange]?.state = .doubted
            heldTokens[exchange]?.askAt = now
            hasDoubts = true
        }
    }

    /// Asks the store about tokens in doubt, some at a time.
    mutating func askAboutTokens() {
        guard hasDoubts, let sessions = snapshot.signIn.sessions else { return }
        var left = Worker.questions
        hasDoubts = false
        for (exchange, held) in heldTokens where held.state == .doubted {
            hasDoubts = true
            guard held.askAt <= now else { continue }
            guard left > 0 else { return }
            left -= 1
            ask(sessions, about: exchange, held.token)
        }
    }

    private mutating func ask(_ sessions: any SessionJudging, about exchange: Int32, _ token: Secret) {
        heldTokens[exchange]?.state = .asked
        let context = AuthenticationContext(
            now: MartletCore.UnixTime(seconds: unixTime),
            deadline: MonotonicTime(nanoseconds: now &+ Worker.patience), client: network(of: exchange))
        verifier.submit(
            Verifier.Job(
                credential: token.withBytes { Credential(bearer: $0) }, judge: .sessions(sessions), subjects: nil,
                context: context, mailbox: mailbox, exchange: exchange, generation: exchanges[exchange].generation,
                epoch: epoch))
    }

    /// The store has answered.
    mutating func judgedAgain(_ exchange: Int32, _ verdict: Verdict) {
        guard exchanges[exchange].holdsToken, heldTokens[exchange]?.state == .asked else { return }
        switch verdict {
        case .success: heldTokens[exchange]?.state = .trusted
        case .failure(let error) where error.disposition == .rejected: markRevoked(exchange)
        case .failure:
            heldTokens[exchange]?.state = .doubted
            heldTokens[exchange]?.askAt = now &+ Worker.askAgain
            hasDoubts = true
        }
    }

    /// The exchange ends.
    mutating func dropToken(of exchange: Int32) { heldTokens[exchange] = nil }
}
