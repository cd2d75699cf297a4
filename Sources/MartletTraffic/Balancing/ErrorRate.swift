/// The share of failures from which an endpoint is ejected.
package struct ErrorRatePolicy: Sendable, Equatable {
    package var percent: Int
    /// Requests in a window below which the rate decides nothing.
    package var minimumRequests: Int
    /// Nanoseconds.
    package var window: Int64

    package init(percent: Int, minimumRequests: Int, window: Int64) {
        self.percent = percent
        self.minimumRequests = minimumRequests
        self.window = window
    }
}

/// Requests to an endpoint and their failures in a window of time.
///
/// The window is two halves, of which the older one is dropped as a whole: an outcome counts for between half of the
/// window and all of it.
package struct ErrorRate: Sendable, Equatable {
    private struct Half: Equatable {
        var requests = 0
        var failures = 0
    }

    private var older = Half()
    private var newer = Half()
    /// When the newer half began.
    private var start: Int64 = 0

    package init() {}

    /// Counts the outcome of a request.
    package mutating func count(isFailure: Bool, at now: Int64, _ policy: ErrorRatePolicy) {
        advance(to: now, policy.window / 2)
        newer.requests &+= 1
        if isFailure { newer.failures &+= 1 }
    }

    /// Whether so many requests of the window have failed that the endpoint is ejected.
    package func exceeds(_ policy: ErrorRatePolicy) -> Bool {
        let requests = older.requests &+ newer.requests
        let failures = older.failures &+ newer.failures
        return requests >= policy.minimumRequests && failures &* 100 >= requests &* policy.percent
    }

    private mutating func advance(to now: Int64, _ half: Int64) {
        let passed = now &- start
        guard passed >= half else { return }
        older = passed < half &* 2 ? newer : Half()
        newer = Half()
        start = now
    }
}
