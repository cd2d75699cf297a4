package import MartletConfig
internal import MartletTraffic
private import Synchronization

/// The limits on requests of one route.
@safe @usableFromInline package final class RouteLimitPlan: Sendable {
    /// Numbers plans, so that tokens are given back to the one that they were taken of.
    private static let lastID = Atomic<Int32>(0)

    package let id: Int32
    /// Those that are decided before the credential is looked at come first.
    package let limits: [PlannedLimit]
    @usableFromInline let unretained: [Unmanaged<PlannedLimit>]
    /// How many of them come first.
    package let countBeforeCaller: Int
    /// Whether any of them counts in the store.
    package let isShared: Bool
    /// Whether every response tells what is left.
    package let announces: Bool
    /// `RateLimit-Policy`, and the name of `RateLimit`.
    package let beginning: [UInt8]
    /// The requests that may be under way at a time; `max` is unlimited.
    package let concurrency: Int
    package let counter: DividedCounter

    package init(_ limits: [PlannedLimit], _ configuration: RouteLimitsConfiguration, counter: DividedCounter) {
        func needsCaller(_ limit: PlannedLimit) -> Bool {
            limit.parts.contains(.subject) || limit.parts.contains(.provider)
        }
        let first = limits.filter { !needsCaller($0) }
        self.limits = first + limits.filter(needsCaller)
        unsafe unretained = self.limits.map { unsafe Unmanaged.passUnretained($0) }
        id = Self.lastID.wrappingAdd(1, ordering: .relaxed).newValue
        countBeforeCaller = first.count
        isShared = limits.contains { $0.shared != nil }
        announces = configuration.announces
        let policy = self.limits.map(\.policy).joined(separator: ", ")
        beginning = Array("RateLimit-Policy: \(policy)\r\nRateLimit: ".utf8)
        concurrency = configuration.concurrency ?? .max
        self.counter = counter
    }

    /// Lends one of the limits, which the plan retains.
    @inlinable @inline(__always)
    package func withLimit<Value>(_ index: Int, _ body: (PlannedLimit) -> Value) -> Value {
        unsafe unretained[index]._withUnsafeGuaranteedRef(body)
    }

    /// Counts what some limits have decided: where one rejects a request, the others have not let it pass.
    package func count(_ decisions: inout LimitDecisions, _ range: Range<Int>) {
        let areAllowed = decisions.areAllowed
        for index in range where decisions.isDecided(index) && decisions.isAllowed(index) == areAllowed {
            withLimit(index) { $0.counts.count(isAllowed: areAllowed) }
        }
    }
}
