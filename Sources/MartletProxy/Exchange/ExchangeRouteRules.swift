internal import MartletCore
internal import MartletDecisions
internal import MartletResponder

/// What an exchange keeps of its route until its response's head; few routes have any of it.
@safe struct ExchangeRouteRules {
    /// What happens to an exchange whose time has passed.
    enum Action: Equatable {
        /// Nothing: the response has begun.
        case ignore
        /// The request waits, and is routed again.
        case reroute
        case fail
    }

    /// The route took too long.
    static let timeout = Failure.upstreamTimeout("route.timed_out")

    /// Whether there is any.
    private(set) var isSet = false
    private(set) var responseFields: ResponseFieldRules?
    /// Kept when the exchange has ended, as the next one in its slot mostly has the same, and need not count it.
    private var crossOrigin: CrossOriginFields?
    /// The same while the exchange has it, to lend it without counting.
    private var lent: Unmanaged<CrossOriginFields>?
    /// When the response's head has to be there, in nanoseconds.
    private(set) var deadline = Int64.max

    /// - Parameters:
    ///   - started: when the request began.
    ///   - timeout: in nanoseconds; `max` for none.
    mutating func set(started: Int64, timeout: Int64) {
        end()
        isSet = true
        deadline = timeout == .max ? .max : started &+ timeout
    }

    /// Has the response get and lose fields.
    mutating func set(_ fields: ResponseFieldRules?) { responseFields = fields }

    /// Has the response tell a page of another origin what it may read.
    mutating func set(crossOrigin fields: CrossOriginFields) {
        if crossOrigin !== fields { crossOrigin = fields }
        unsafe lent = Unmanaged.passUnretained(fields)
    }

    /// Lends what the response tells a page of another origin, if the route has rules for them.
    ///
    /// Mutating, though it only reads: others get a copy, whose references are counted.
    @inline(__always)
    mutating func withCrossOrigin(_ body: (CrossOriginFields) -> Void) {
        unsafe lent?._withUnsafeGuaranteedRef(body)
    }

    /// The exchange has ended.
    @inline(__always)
    mutating func end() {
        guard isSet else { return }
        isSet = false
        if responseFields != nil { responseFields = nil }
        unsafe lent = nil
        deadline = .max
    }

    /// The action at a moment; a deadline that has passed counts once.
    mutating func action(hasResponseStarted: Bool, isWaiting: Bool, at now: Int64) -> Action {
        guard deadline <= now else { return .ignore }
        if isWaiting { return .reroute }
        deadline = .max
        return hasResponseStarted ? .ignore : .fail
    }
}
