/// What one process knows of a bucket in the store: tokens that it has leased, and until when there are none.
///
/// A lease is short, and the store gives out no more tokens on lease at a time than ``TokenRate/leasable``: a tenth of
/// the burst, over all processes. Where that is less than one, each request asks. A process leases the more the more
/// often it has to ask, and asks at most once at a time for each key; requests that come meanwhile are asked for
/// together with the next one.
struct TokenLease {
    /// How long leased tokens may be used, counted from before they were asked for. The store forgets them after as
    /// long, counted from when it granted them.
    static let lifetime: Int64 = 200_000_000

    enum Step: Equatable {
        case decided(TokenDecision)
        /// Only the store can decide.
        case ask
    }

    /// Leased tokens that are left.
    private var held = 0
    /// Leased tokens that were used and not reported yet.
    private var used = 0
    private var expires = Int64.min
    /// How many the next ask would lease.
    private var wish = 0
    private var asked = Int64.min
    /// There is no token before.
    private var emptyUntil = Int64.min
    /// When the bucket will be full once the held tokens are used.
    private var fullAt: Int64 = 0
    /// Tokens to give back with the next ask.
    private(set) var returned = 0
    /// Whether an ask is in progress.
    private(set) var isAsking = false

    /// Whether there is nothing to keep.
    func isIdle(at now: Int64) -> Bool { !isAsking && returned == 0 && now >= expires && now >= emptyUntil }

    /// Decides from what is known.
    mutating func take(_ rate: TokenRate, at now: Int64) -> Step {
        if now < expires, held > 0 {
            held -= 1
            used += 1
            return .decided(TokenDecision(isAllowed: true, missing: missing(rate, at: now)))
        }
        guard now < emptyUntil else { return .ask }
        return .decided(TokenDecision(isAllowed: false, missing: rate.missing(withWait: emptyUntil &- now)))
    }

    /// Begins to ask for requests that wait, which may be none.
    mutating func ask(for waiting: Int, _ rate: TokenRate, at now: Int64) -> TokenAsk {
        let isLeaseValid = now < expires
        if waiting > 0 {
            let isFrequent = asked != .min && now &- asked < Self.lifetime
            wish = isFrequent ? min(max(wish * 2, 1), rate.leasable) : wish / 2
        }
        var ask = TokenAsk()
        ask.rate = rate
        ask.waiting = waiting
        if !isLeaseValid { held = 0 }
        ask.extra = waiting > 0 && held == 0 ? min(wish, rate.leasable) : 0
        ask.spent = isLeaseValid ? used : 0
        ask.returned = returned
        used = 0
        returned = 0
        asked = now
        isAsking = true
        return ask
    }

    /// Ends an ask.
    /// - Returns: the decisions for the requests that waited, in order; none if the store did not respond.
    mutating func finish(_ ask: TokenAsk, _ grant: TokenGrant?, at now: Int64) -> [TokenDecision] {
        isAsking = false
        guard let grant else { return [] }
        if grant.extra > 0 {
            // Tokens are leased only when none were left.
            held = grant.extra
            expires = asked &+ Self.lifetime
        }
        fullAt = now.saturatingSum(grant.missing)
        let rate = ask.rate
        let last = TokenDecision(isAllowed: false, missing: rate.missing(withWait: wait(rate, at: now)))
        if grant.granted < ask.waiting { emptyUntil = now.saturatingSum(max(wait(rate, at: now), 1)) }
        return (0..<ask.waiting).map { index in
            guard index < grant.granted else { return last }
            let later = Int64(grant.granted - 1 - index) &* rate.interval
            return TokenDecision(isAllowed: true, missing: max(missing(rate, at: now) &- later, 0))
        }
    }

    /// Gives back a token that a request has taken and did not need.
    mutating func giveBack(at now: Int64) {
        emptyUntil = .min
        if now < expires, used > 0 {
            used -= 1
            held += 1
        } else {
            returned += 1
        }
    }

    /// Nanoseconds until the bucket is full, without those that are held.
    private func missing(_ rate: TokenRate, at now: Int64) -> Int64 {
        let all = min(max(fullAt.saturatingDifference(now), 0), rate.capacity)
        return max(all &- Int64(held) &* rate.interval, 0)
    }

    private func wait(_ rate: TokenRate, at now: Int64) -> Int64 {
        TokenDecision(isAllowed: false, missing: min(max(fullAt.saturatingDifference(now), 0), rate.capacity)).wait(
            rate)
    }
}

extension TokenRate {
    /// What a bucket misses whose next token comes after some nanoseconds, at most those of one token.
    func missing(withWait wait: Int64) -> Int64 { min(max(wait, 1), interval) &+ (capacity &- interval) }

    /// The rejection where the store does not respond: the next request may come after a second.
    package var rejectionWithoutStore: TokenDecision {
        TokenDecision(isAllowed: false, missing: missing(withWait: 1))
    }
}

extension Int64 {
    func saturatingSum(_ other: Int64) -> Int64 {
        let sum = addingReportingOverflow(other)
        return sum.overflow ? (other < 0 ? .min : .max) : sum.partialValue
    }

    func saturatingDifference(_ other: Int64) -> Int64 {
        let difference = subtractingReportingOverflow(other)
        return difference.overflow ? (other < 0 ? .max : .min) : difference.partialValue
    }
}
