internal import MartletDecisions
internal import MartletTraffic

/// Counts requests in the store, where a route has limits that are shared.
extension RequestRouter {
    /// Takes a token of each of some limits, of which some are shared.
    ///
    /// Limits that need no store decide first: where one of them rejects the request, the store is not asked.
    /// - Returns: `false` if the request waits for the store.
    @inline(never)
    mutating func takeShared(
        _ decisions: inout LimitDecisions, _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ range: Range<Int>,
        needsCaller: Bool, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) -> Bool {
        if let decided = unsafe takeDecided(
            exchange, plan, needsCaller: needsCaller, bytes, &exchanges, &downstreams, &context)
        {
            decisions = decided
            return true
        }
        var missing: UInt16 = 0
        for index in range where plan.limits[index].shared == nil {
            let limit = plan.limits[index]
            let key = unsafe key(of: limit, exchange, bytes, &exchanges, &downstreams, &context)
            decisions.take(key, of: index, limit, at: context.now)
        }
        guard decisions.areAllowed else { return true }
        for index in range {
            guard let shared = plan.limits[index].shared else { continue }
            let (limit, key) = unsafe (
                plan.limits[index],
                key(of: plan.limits[index], exchange, bytes, &exchanges, &downstreams, &context)
            )
            switch shared.take(key, limit.rate, at: context.now) {
            case .decided(let decision): record(decision, of: index, limit, key, &decisions, &context)
            case .ask: missing |= LimitDecisions.bit(index)
            case .unavailable: decisions.recordWithoutStore(index, limit, key, at: context.now)
            }
        }
        guard missing != 0, decisions.areAllowed else { return true }
        let wait = LimitWait(plan, range, needsCaller: needsCaller, decisions, missing: missing) {
            [mailbox = context.mailbox] in
            mailbox.post(.limitsDecided(exchange: exchange, $0))
        }
        var longestWait: Int64 = 0
        for index in range where missing & LimitDecisions.bit(index) != 0 {
            let (limit, key) = unsafe (
                plan.limits[index],
                key(of: plan.limits[index], exchange, bytes, &exchanges, &downstreams, &context)
            )
            longestWait = limit.shared?.client.longestWait ?? longestWait
            unsafe limit.shared?.join(
                key, limit.rate,
                named: storeKey(of: limit, exchange, bytes, &exchanges, &downstreams, &context),
                at: context.now, wait, index)
        }
        exchanges.suspend(
            exchange, for: .limits(PendingLimits(wait)), until: context.now &+ longestWait, &downstreams, &context)
        return false
    }

    /// The decisions that a request has waited for; `nil` if it has not, or for those of another configuration.
    private mutating func takeDecided(
        _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, needsCaller: Bool, _ bytes: UnsafeBufferPointer<UInt8>,
        _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) -> LimitDecisions? {
        guard let wait = exchanges[exchange].record.limits.decided, wait.needsCaller == needsCaller else {
            return nil
        }
        exchanges[exchange].record.limits.decided = nil
        // The tokens of another configuration's limits are lost.
        guard wait.plan === plan else { return nil }
        var (decisions, failed) = wait.end()
        for index in wait.range {
            let (limit, bit) = (plan.limits[index], LimitDecisions.bit(index))
            if failed & bit != 0 {
                let key = unsafe key(of: limit, exchange, bytes, &exchanges, &downstreams, &context)
                decisions.recordWithoutStore(index, limit, key, at: context.now)
            } else if decisions.storeTokens & bit != 0, limit.countsAlong {
                _ = limit.table.take(
                    unsafe key(of: limit, exchange, bytes, &exchanges, &downstreams, &context), limit.rate,
                    at: context.now)
            }
        }
        return decisions
    }

    /// Records what is known of the store's decision.
    private func record(
        _ decision: TokenDecision, of index: Int, _ limit: PlannedLimit, _ key: RateKey,
        _ decisions: inout LimitDecisions, _ context: inout LoopContext
    ) {
        decisions.record(decision, of: index, limit.rate)
        guard decision.isAllowed else { return }
        decisions.storeTokens |= LimitDecisions.bit(index)
        if limit.countsAlong { _ = limit.table.take(key, limit.rate, at: context.now) }
    }
}
