/// When an endpoint that fails requests is not used for a while.
package struct EjectionPolicy: Sendable, Equatable {
    /// Failures in a row after which it is ejected.
    package var failures = 5
    /// The first ejection, in nanoseconds; each further one is twice as long.
    package var shortest: Int64 = 1_000_000_000
    package var longest: Int64 = 60_000_000_000
    /// The error rate that ejects; `nil` is none.
    package var rate: ErrorRatePolicy?
    /// The largest share of the endpoints that are out of use at a time, in percent.
    package var maximumEjected = 100

    package init() {}

    /// Whether one more of several endpoints may be ejected.
    ///
    /// Of two or more, one always may be; of one, its state is kept and not used.
    /// - Parameters:
    ///   - out: endpoints that are out of use already: ejected, unhealthy or drained.
    ///   - count: all endpoints.
    package func mayEject(out: Int, of count: Int) -> Bool {
        guard count > 1, maximumEjected < 100 else { return true }
        return out &+ 1 <= max(count &* maximumEjected / 100, 1)
    }
}

/// The failures of one endpoint, and how long it is ejected for them.
@frozen @usableFromInline package struct Ejection: Sendable, Equatable {
    /// What a failure means.
    package enum Failure: Sendable {
        /// It could not be connected to.
        case refused
        /// It gave no response, or one that counts as a failure.
        case failed
    }

    /// Failures in a row.
    package private(set) var failures = 0
    /// Ejections in a row: the last one is not over before a request succeeds.
    @usableFromInline package private(set) var count = 0
    @usableFromInline package private(set) var until: Int64 = 0
    /// A request tries whether it works again.
    @usableFromInline package private(set) var isHalfOpen = false

    package init() {}

    /// Whether it gets requests: one that was ejected gets a single one after its time.
    @inlinable @inline(__always)
    package func isUsable(at now: Int64) -> Bool { count == 0 || (until <= now && !isHalfOpen) }

    /// A request is sent to it.
    @inlinable @inline(__always)
    package mutating func began() {
        if count > 0 { isHalfOpen = true }
    }

    /// A request to it has ended.
    @inlinable @inline(__always)
    package mutating func ended() { isHalfOpen = false }

    /// It responded.
    /// - Returns: whether it was ejected before.
    @discardableResult
    package mutating func succeeded() -> Bool {
        guard failures > 0 || count > 0 else { return false }
        let wasEjected = count > 0
        self = Ejection()
        return wasEjected
    }

    /// It failed a request.
    /// - Parameters:
    ///   - exceedsRate: whether its error rate alone ejects it.
    ///   - mayEject: whether another endpoint may be out of use.
    /// - Returns: whether it is ejected from now on, newly or for a longer time.
    @discardableResult
    package mutating func failed(
        _ failure: Failure, exceedsRate: Bool = false, mayEject: Bool, by policy: EjectionPolicy, at now: Int64
    ) -> Bool {
        if failures < Int.max { failures += 1 }
        guard failure == .refused || count > 0 || exceedsRate || failures >= policy.failures else { return false }
        // A request that was sent before says nothing new; one that is ejected already is no further endpoint.
        guard count == 0 ? mayEject : until <= now else { return false }
        let doublings = min(count, 40)
        let span = policy.shortest > policy.longest >> doublings ? policy.longest : policy.shortest << doublings
        until = now &+ span
        count += 1
        isHalfOpen = false
        return true
    }
}
