internal import MartletCore
internal import MartletDecisions
internal import MartletResponder

/// What an exchange keeps of its route until its response's head; few routes have any of it.
struct ExchangeRouteRules {
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
    private(set) var crossOrigin: CrossOriginFields?
    /// When the response's head has to be there, in nanoseconds.
    private(set) var deadline = Int64.max

    /// - Parameters:
    ///   - started: when the request began.
    ///   - timeout: in nanoseconds; `max` for none.
    mutating func set(
        _ fields: ResponseFieldRules?, crossOrigin: CrossOriginFields? = nil, started: Int64, timeout: Int64
    ) {
        isSet = true
        responseFields = fields
        self.crossOrigin = crossOrigin
        deadline = timeout == .max ? .max : started &+ timeout
    }

    /// Releases what only some exchanges hold.
    @inline(__always)
    mutating func end() {
        if isSet { self = ExchangeRouteRules() }
    }

    /// The action at a moment; a deadline that has passed counts once.
    mutating func action(hasResponseStarted: Bool, isWaiting: Bool, at now: Int64) -> Action {
        guard deadline <= now else { return .ignore }
        if isWaiting { return .reroute }
        deadline = .max
        return hasResponseStarted ? .ignore : .fail
    }
}
