internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletTraffic

/// Counts requests of routes with limits, and rejects those for which there is no room.
extension RequestRouter {
    /// Counts a request before its credential is looked at.
    /// - Returns: `false` if it was rejected, or waits for the store.
    @inline(never)
    mutating func admit(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        // After a verification, or after a reload meanwhile, the request comes here again.
        if loop.exchanges[exchange].record.limits.isEntered {
            guard loop.exchanges[exchange].record.limits.decided?.needsCaller == false else { return true }
        }
        let index = loop.context.snapshot.compiledRoutes[route].limitPlan
        // The snapshot retains the plan: no need to retain it again for the call.
        return unsafe Unmanaged.passUnretained(loop.context.snapshot.routeLimits.plans[index])
            ._withUnsafeGuaranteedRef { plan in
                if !loop.exchanges[exchange].record.limits.isEntered {
                    loop.exchanges[exchange].record.limits.enter()
                    if plan.concurrency < .max, !Self.enter(exchange, plan, &loop.exchanges, &loop.downstreams) {
                        unsafe noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
                        loop.reject(exchange, .tooManyUnderWay)
                        return false
                    }
                }
                return unsafe takeTokens(
                    exchange, plan, 0..<plan.countBeforeCaller, needsCaller: false, bytes, &loop)
            }
    }

    /// Counts a request as under way.
    /// - Returns: whether there was room.
    private static func enter(
        _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections
    ) -> Bool {
        let isDivided = plan.counter.isDivided(of: plan.concurrency)
        let network = isDivided ? exchanges[exchange].clientNetwork(&downstreams) : nil
        return exchanges[exchange].record.limits.enter(plan.counter, maximum: plan.concurrency, for: network)
    }

    /// Counts a request whose caller is authorized, by the limits that need the caller.
    /// - Returns: `false` if it was rejected, or waits for the store.
    @inline(never)
    mutating func admitCaller(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        let index = loop.context.snapshot.compiledRoutes[route].limitPlan
        guard index >= 0 else { return true }
        return unsafe Unmanaged.passUnretained(loop.context.snapshot.routeLimits.plans[index])
            ._withUnsafeGuaranteedRef { plan in
                let range = plan.countBeforeCaller..<plan.limits.count
                guard !range.isEmpty else { return true }
                return unsafe takeTokens(exchange, plan, range, needsCaller: true, bytes, &loop)
            }
    }

    /// Takes a token of each of some limits; if one of them has none, the others get theirs back.
    private mutating func takeTokens(
        _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ range: Range<Int>, needsCaller: Bool,
        _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        var decisions = LimitDecisions()
        if plan.isShared {
            guard
                let shared = unsafe takeShared(
                    exchange, plan, range, needsCaller: needsCaller, bytes, &loop.exchanges, &loop.downstreams,
                    &loop.context)
            else {
                return false
            }
            decisions = shared
        } else {
            for index in range {
                unsafe takeLocal(
                    plan.limits[index], index, exchange, bytes, &decisions, &loop.exchanges, &loop.downstreams,
                    &loop.context)
            }
        }
        plan.count(decisions, range)
        guard decisions.areAllowed else {
            unsafe giveBack(&decisions, exchange, plan, range, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
            announce(decisions, exchange, plan, range, continues: false, &loop.exchanges)
            let limit = plan.limits[decisions.rejecting]
            let retryAfter = decisions[decisions.rejecting].retryAfter(limit.rate)
            unsafe noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
            loop.reject(
                exchange,
                decisions.isStoreFailure
                    ? .limitUnavailable(limit.name) : .rateExceeded(limit.name, retryAfter: retryAfter))
            return false
        }
        if !needsCaller { loop.exchanges[exchange].record.limits.took(plan.id, storeTokens: decisions.storeTokens) }
        if plan.announces {
            announce(decisions, exchange, plan, range, continues: range.lowerBound > 0, &loop.exchanges)
        }
        return true
    }

    /// Takes a token of a limit that this process counts.
    @inline(__always)
    private mutating func takeLocal(
        _ limit: PlannedLimit, _ index: Int, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ decisions: inout LimitDecisions, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) {
        let key = unsafe key(of: limit, exchange, bytes, &exchanges, &downstreams, &context)
        decisions.record(limit.table.take(key, limit.rate, at: context.now), of: index, limit.rate)
    }

    /// Gives back the tokens of a request that is rejected.
    private mutating func giveBack(
        _ decisions: inout LimitDecisions, _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ range: Range<Int>,
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) {
        // Limits of the first phase took theirs before; those of a configuration that was replaced meanwhile keep them,
        // since the limits of this one did not give them out.
        let hasEarlier = exchanges[exchange].record.limits.plan == plan.id
        let earlier = exchanges[exchange].record.limits.storeTokens
        for index in 0..<range.upperBound where index < range.lowerBound ? hasEarlier : decisions.took(index) {
            let limit = plan.limits[index]
            let tokens = index < range.lowerBound ? earlier : decisions.storeTokens
            let isOfStore = tokens & LimitDecisions.bit(index) != 0
            let key = unsafe key(of: limit, exchange, bytes, &exchanges, &downstreams, &context)
            if isOfStore {
                unsafe limit.shared?.giveBack(
                    key, limit.rate, named: storeKey(of: limit, exchange, bytes, &exchanges, &downstreams, &context),
                    at: context.now)
            }
            // One that lets requests pass without the store has taken none.
            if !isOfStore || limit.countsAlong { limit.table.giveBack(key, limit.rate) }
            if index >= range.lowerBound { decisions.gaveBack(index, limit.rate) }
        }
    }

    /// Adds RateLimit fields for some limits to the response.
    /// - Parameter continues: after those of the first phase.
    private func announce(
        _ decisions: LimitDecisions, _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ range: Range<Int>,
        continues: Bool, _ exchanges: inout Exchanges
    ) {
        guard !range.isEmpty else { return }
        if !continues { exchanges[exchange].record.limits.announce(plan.policy) }
        var isFirst = !continues
        for index in range where decisions.isDecided(index) {
            exchanges[exchange].record.limits.announce(decisions[index], of: plan.limits[index], isFirst: isFirst)
            isFirst = false
        }
    }
}
