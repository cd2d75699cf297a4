internal import MartletConfig
package import MartletTraffic

/// What the rate limits of one phase decided about a request: all of them pass it, or none counts it.
///
/// Lent `inout`, also where it is only read: one that a function borrows is copied for it.
@frozen @usableFromInline package struct LimitDecisions: Sendable {
    /// For each limit, the nanoseconds until its bucket is full.
    @usableFromInline var missing = InlineArray<8, Int64>(repeating: 0)
    /// The limit without a token whose next one comes last, or −1.
    @usableFromInline package private(set) var rejecting = -1
    @usableFromInline var longestWait: Int64 = -1
    /// Limits that have decided, those that let the request pass, and those that have taken a token, as bits.
    @usableFromInline var decided: UInt16 = 0
    @usableFromInline var passing: UInt16 = .max
    @usableFromInline var taken: UInt16 = 0
    /// Limits whose token is one of the store, as bits.
    package var storeTokens: UInt16 = 0
    /// Limits that reject because the store does not respond, as bits.
    @usableFromInline var withoutStore: UInt16 = 0

    @inlinable @inline(__always) package init() {}

    /// The number of limits that it has room for.
    package static let capacity = RouteLimitsConfiguration.maximumRates

    package subscript(index: Int) -> TokenDecision {
        mutating get { TokenDecision(isAllowed: isAllowed(index), missing: missing[index]) }
    }

    /// Whether there was a token in each.
    @inlinable package var areAllowed: Bool { rejecting < 0 }

    /// Whether it is an outage of the store that rejects the request.
    package var isStoreFailure: Bool { rejecting >= 0 && withoutStore & Self.bit(rejecting) != 0 }

    /// A limit as a bit.
    @inlinable package static func bit(_ index: Int) -> UInt16 { 1 &<< UInt16(truncatingIfNeeded: index) }

    /// Whether one limit lets the request pass.
    @inline(__always)
    mutating func isAllowed(_ index: Int) -> Bool { passing & Self.bit(index) != 0 }

    /// Takes a token of a limit that counts in this process.
    package mutating func take(_ key: RateKey, of index: Int, _ limit: PlannedLimit, at now: Int64) {
        record(limit.table.take(key, limit.rate, at: now), of: index, limit.rate)
    }

    /// Records what one limit decided.
    @inline(__always)
    package mutating func record(_ decision: TokenDecision, of index: Int, _ rate: TokenRate) {
        missing[index] = decision.missing
        decided |= Self.bit(index)
        guard !decision.isAllowed else {
            passing |= Self.bit(index)
            taken |= Self.bit(index)
            return
        }
        passing &= ~Self.bit(index)
        guard decision.wait(rate) > longestWait else { return }
        longestWait = decision.wait(rate)
        rejecting = index
    }

    /// Records that a limit lets no request pass, because the store does not respond.
    mutating func recordStoreFailure(of index: Int, _ rate: TokenRate) {
        withoutStore |= Self.bit(index)
        record(rate.rejectionWithoutStore, of: index, rate)
    }

    /// Records that a limit lets the request pass without a token, because the store does not respond.
    mutating func recordUncounted(_ index: Int) {
        decided |= Self.bit(index)
        passing |= Self.bit(index)
        missing[index] = 0
    }

    /// Decides as the limit's `on_store_error` says.
    package mutating func recordWithoutStore(_ index: Int, _ limit: PlannedLimit, _ key: RateKey, at now: Int64) {
        switch limit.onStoreError {
        case .local: take(key, of: index, limit, at: now)
        case .deny: recordStoreFailure(of: index, limit.rate)
        case .allow: recordUncounted(index)
        }
    }

    /// Whether a limit has decided: where one rejects a request, others may not have been asked.
    @inlinable package func isDecided(_ index: Int) -> Bool { decided & Self.bit(index) != 0 }

    /// Whether a limit took a token, which is to be given back if the request is rejected.
    package func took(_ index: Int) -> Bool { taken & Self.bit(index) != 0 }

    /// Records that a token was given back.
    package mutating func gaveBack(_ index: Int, _ rate: TokenRate) {
        missing[index] = self[index].givenBack(rate).missing
    }
}
