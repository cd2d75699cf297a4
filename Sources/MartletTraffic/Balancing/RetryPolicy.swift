/// When a request is sent again.
package struct RetryPolicy: Sendable, Equatable {
    /// What a request is sent again after.
    package struct Conditions: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// No connection.
        package static var connect: Conditions { Conditions(rawValue: 1) }
        /// A connection that ended without a response, or an attempt that took too long.
        package static var reset: Conditions { Conditions(rawValue: 2) }
        package static var badGateway: Conditions { Conditions(rawValue: 4) }
        package static var serviceUnavailable: Conditions { Conditions(rawValue: 8) }
        package static var gatewayTimeout: Conditions { Conditions(rawValue: 16) }

        /// The condition of a status; empty if a response of this status is never repeated.
        package init(status: Int) {
            switch status {
            case 502: self = .badGateway
            case 503: self = .serviceUnavailable
            case 504: self = .gatewayTimeout
            default: self = []
            }
        }
    }

    /// How often a request is sent again at most.
    package var attempts: Int
    package var conditions: Conditions
    /// For the head of a response, from the end of the request on, in nanoseconds; `nil` is not limited for an attempt.
    package var perTryTimeout: Int64?
    /// The wait before the first retry, in nanoseconds.
    package var backoff: Int64
    package var budget: RetryBudgetPolicy

    package init(
        attempts: Int, conditions: Conditions, perTryTimeout: Int64?, backoff: Int64, budget: RetryBudgetPolicy
    ) {
        self.attempts = attempts
        self.conditions = conditions
        self.perTryTimeout = perTryTimeout
        self.backoff = backoff
        self.budget = budget
    }

    /// The wait before a retry, in nanoseconds: it doubles with each, and is at random between half and all of it, so
    /// that requests which failed together do not return together.
    /// - Parameters:
    ///   - retry: 1 for the first one.
    ///   - random: any number.
    package func wait(before retry: Int, random: UInt64) -> Int64 {
        guard backoff > 0 else { return 0 }
        let longest = min(backoff << Int64(min(max(retry, 1) - 1, 10)), 60_000_000_000)
        return longest / 2 &+ Int64(random % UInt64(longest / 2 &+ 1))
    }
}

/// How many retries there may be in relation to requests.
package struct RetryBudgetPolicy: Sendable, Equatable {
    package var percent: Int
    /// Retries that each second may have in any case.
    package var minimumPerSecond: Int

    package init(percent: Int, minimumPerSecond: Int) {
        self.percent = percent
        self.minimumPerSecond = minimumPerSecond
    }
}
