internal import MartletCore
package import MartletTraffic

/// The limits of one phase of a request that waits for the store, and what was decided so far.
///
/// The exchange refers to it; when the store has responded for all limits, or the request has waited as long as it may,
/// the request is processed again, and finds the decisions here.
package final class LimitWait: TokenWaiting {
    private struct State {
        package var decisions: LimitDecisions
        /// Limits of which a decision is missing, as bits.
        package var missing: UInt16
        /// Limits for which the store did not respond, as bits.
        package var failed: UInt16 = 0
        package var isOver = false
    }

    package let plan: RouteLimitPlan
    /// The limits that it decides about, and whether they need the caller.
    package let range: Range<Int>
    package let needsCaller: Bool
    private let finished: @Sendable (LimitWait) -> Void
    private let state: Lock<State>

    /// - Parameters:
    ///   - decisions: of the limits that need no store.
    ///   - missing: those that do, as bits.
    ///   - finished: is called when the store has decided about all of these, on any thread.
    package init(
        _ plan: RouteLimitPlan, _ range: Range<Int>, needsCaller: Bool, _ decisions: LimitDecisions, missing: UInt16,
        finished: @escaping @Sendable (LimitWait) -> Void
    ) {
        (self.plan, self.range, self.needsCaller) = (plan, range, needsCaller)
        self.finished = finished
        state = Lock(State(decisions: decisions, missing: missing))
    }

    /// Records what the store has decided; the last one has the request go on.
    package func decided(_ index: Int, _ decision: TokenDecision?) {
        let isLast = state.withLock { state in
            let bit = LimitDecisions.bit(index)
            // After its end a token is lost, as it is with the request of a client that has left.
            guard !state.isOver, state.missing & bit != 0 else { return false }
            state.missing &= ~bit
            if let decision {
                state.decisions.record(decision, of: index, plan.limits[index].rate)
                if decision.isAllowed { state.decisions.storeTokens |= bit }
            } else {
                state.failed |= bit
            }
            state.isOver = state.missing == 0
            return state.isOver
        }
        if isLast { finished(self) }
    }

    /// The request has waited for the store as long as it may.
    package func timedOut(at now: Int64) { plan.limits.lazy.compactMap(\.shared).first?.client.timedOut(at: now) }

    /// Ends it: what is missing has failed.
    /// - Returns: the decisions, and the limits that the store did not decide about, as bits.
    package func end() -> (decisions: LimitDecisions, failed: UInt16) {
        state.withLock { state in
            state.isOver = true
            state.failed |= state.missing
            state.missing = 0
            return (state.decisions, state.failed)
        }
    }
}
