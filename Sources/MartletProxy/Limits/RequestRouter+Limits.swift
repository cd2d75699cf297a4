internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletTraffic

/// Counts requests of routes with limits, and rejects those for which there is no room.
extension RequestRouter {
    /// Counts a request before its credential is looked at.
    /// - Returns: `false` if it waits for the store.
    @inline(never)
    mutating func admit(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) throws(Failure) -> Bool {
        // After a verification, or after a reload meanwhile, the request comes here again.
        if exchanges[exchange].record.limits.isEntered {
            guard exchanges[exchange].record.limits.decided?.needsCaller == false else { return true }
        }
        let index = context.snapshot.compiledRoutes[route].limitPlan
        // The snapshot retains the plan: no need to retain it again for the call.
        let admission = unsafe Unmanaged.passUnretained(context.snapshot.routeLimits.plans[index])
            ._withUnsafeGuaranteedRef { plan in
                if !exchanges[exchange].record.limits.isEntered {
                    exchanges[exchange].record.limits.enter()
                    if plan.concurrency < .max, !Self.enter(exchange, plan, &exchanges, &downstreams) {
                        unsafe noteHead(exchange, bytes, &exchanges, &downstreams, &context)
                        return Admission.tooManyUnderWay
                    }
                }
                return unsafe takeTokens(
                    exchange, plan, 0..<plan.countBeforeCaller, needsCaller: false, bytes, &exchanges, &downstreams,
                    &context)
            }
        return try passes(admission, plan: index, &context)
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
    /// - Returns: `false` if it waits for the store.
    @inline(never)
    mutating func admitCaller(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) throws(Failure) -> Bool {
        let index = context.snapshot.compiledRoutes[route].limitPlan
        guard index >= 0 else { return true }
        let admission = unsafe Unmanaged.passUnretained(context.snapshot.routeLimits.plans[index])
            ._withUnsafeGuaranteedRef { plan in
                let range = plan.countBeforeCaller..<plan.limits.count
                guard !range.isEmpty else { return Admission.passes }
                return unsafe takeTokens(
                    exchange, plan, range, needsCaller: true, bytes, &exchanges, &downstreams, &context)
            }
        return try passes(admission, plan: index, &context)
    }

    /// What limits decide about a request.
    private enum Admission {
        case passes
        /// It waits for the store.
        case waits
        case tooManyUnderWay
        /// A limit, by its index, has no token; seconds until it has one.
        case exceeded(Int, retryAfter: Int)
        /// The store did not respond, and a limit lets nothing pass without it.
        case unavailable(Int)
    }

    /// Whether a request passes or waits.
    /// - Throws: why it is rejected.
    @inline(__always)
    private func passes(
        _ admission: Admission, plan index: Int, _ context: inout LoopContext
    ) throws(Failure) -> Bool {
        switch admission {
        case .passes: return true
        case .waits: return false
        case .tooManyUnderWay: throw .tooManyUnderWay
        case .exceeded(let limit, let retryAfter):
            throw .rateExceeded(context.snapshot.routeLimits.plans[index].limits[limit].name, retryAfter: retryAfter)
        case .unavailable(let limit):
            throw .limitUnavailable(context.snapshot.routeLimits.plans[index].limits[limit].name)
        }
    }

    /// Takes a token of each of some limits; if one of them has none, the others get theirs back.
    private mutating func takeTokens(
        _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ range: Range<Int>, needsCaller: Bool,
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) -> Admission {
        var decisions = LimitDecisions()
        if plan.isShared {
            guard
                unsafe takeShared(
                    &decisions, exchange, plan, range, needsCaller: needsCaller, bytes, &exchanges, &downstreams,
                    &context)
            else { return .waits }
        } else {
            for index in range {
                plan.withLimit(index) {
                    let key = unsafe key(of: $0, exchange, bytes, &exchanges, &downstreams, &context)
                    decisions.take(key, of: index, $0, at: context.now)
                }
            }
        }
        plan.count(&decisions, range)
        guard decisions.areAllowed else {
            return unsafe exceeded(&decisions, exchange, plan, range, bytes, &exchanges, &downstreams, &context)
        }
        if !needsCaller { exchanges[exchange].record.limits.took(plan.id, storeTokens: decisions.storeTokens) }
        if plan.announces {
            announce(&decisions, exchange, plan, range, continues: range.lowerBound > 0, &exchanges)
        }
        return .passes
    }

    /// A limit has no token for a request: the others get theirs back, and its response tells what is left.
    @inline(never)
    private mutating func exceeded(
        _ decisions: inout LimitDecisions, _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ range: Range<Int>,
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) -> Admission {
        unsafe giveBack(&decisions, exchange, plan, range, bytes, &exchanges, &downstreams, &context)
        announce(&decisions, exchange, plan, range, continues: false, &exchanges)
        let limit = plan.limits[decisions.rejecting]
        let retryAfter = decisions[decisions.rejecting].retryAfter(limit.rate)
        unsafe noteHead(exchange, bytes, &exchanges, &downstreams, &context)
        return decisions.isStoreFailure
            ? .unavailable(decisions.rejecting) : .exceeded(decisions.rejecting, retryAfter: retryAfter)
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
        _ decisions: inout LimitDecisions, _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ range: Range<Int>,
        continues: Bool, _ exchanges: inout Exchanges
    ) {
        guard !range.isEmpty else { return }
        if !continues { exchanges[exchange].record.limits.announce(plan) }
        var isFirst = !continues
        for index in range where decisions.isDecided(index) {
            plan.withLimit(index) {
                exchanges[exchange].record.limits.announce(decisions[index], of: $0, isFirst: isFirst)
            }
            isFirst = false
        }
    }
}
