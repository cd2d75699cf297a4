internal import MartletCore
internal import MartletDecisions
internal import MartletProvider
internal import MartletTraffic

/// How an exchange is counted by the limits of its route.
struct ExchangeLimits: ~Copyable {
    /// The limits have counted it: a request whose credential was verified is not counted again.
    private(set) var isEntered = false
    /// Its response tells what is left.
    private(set) var isAnnounced = false
    /// The decisions that it has waited for, until it comes to the limits again.
    var decided: LimitWait?
    /// The plan whose limits have taken tokens before the caller was known, by its number, and those of them whose
    /// tokens are the store's, as bits.
    private(set) var plan: Int32 = -1
    private(set) var storeTokens: UInt16 = 0
    /// Where it is counted as under way.
    private var counter = DividedEntry()
    /// `RateLimit-Policy` and `RateLimit`, without the last line break.
    private var fields = ByteBuffer()

    /// Begins to count a request that reached its route.
    mutating func enter() { isEntered = true }

    /// Records what the limits of a plan have taken.
    mutating func took(_ plan: Int32, storeTokens: UInt16) { (self.plan, self.storeTokens) = (plan, storeTokens) }

    /// Counts it as under way until it ends.
    /// - Returns: whether there was room.
    mutating func enter(_ counter: DividedCounter, maximum: Int, for network: ClientNetwork?) -> Bool {
        self.counter.enter(counter, maximum: maximum, for: network)
    }

    /// Every way in which an exchange ends comes here.
    @inline(__always)
    mutating func end() {
        if isEntered { leave() }
    }

    @inline(never)
    private mutating func leave() {
        counter.leave()
        isEntered = false
        isAnnounced = false
        if decided != nil { decided = nil }
        (plan, storeTokens) = (-1, 0)
        fields.removeAll()
    }
}

/// What a response tells about them.
extension ExchangeLimits {
    /// Begins the fields, in place of earlier ones.
    mutating func announce(_ plan: RouteLimitPlan) {
        isAnnounced = true
        fields.removeAll()
        fields.append(plan.beginning)
    }

    /// Adds the state of one limit.
    mutating func announce(_ decision: TokenDecision, of limit: PlannedLimit, isFirst: Bool) {
        if !isFirst { fields.append(", ") }
        fields.append(limit.announcement)
        fields.append(decimal: decision.remaining(limit.rate))
        fields.append(";t=")
        fields.append(decimal: decision.reset(limit.rate))
    }

    /// Appends the fields to a head.
    func append(to head: inout ByteBuffer) {
        unsafe head.append(fields.bytes)
        head.append("\r\n")
    }
}
