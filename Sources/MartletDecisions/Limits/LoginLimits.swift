package import MartletCore
package import MartletResponder
internal import MartletTraffic

/// The limits of logins, which the sign-in endpoints ask before they read a credential.
package struct LoginLimits: Sendable {
    private let plan: RouteLimitPlan
    private let clock: Clock

    /// - Returns: `nil` without limits.
    package init?(_ plans: RouteLimitPlans, clock: Clock) {
        guard let plan = plans.logins else { return nil }
        self.plan = plan
        self.clock = clock
    }

    /// Counts a request.
    /// - Returns: why it is rejected; `nil` if it is not.
    package func rejection(of request: LocalRequest) async -> Failure? {
        var decisions = LimitDecisions()
        for (index, limit) in plan.limits.enumerated() {
            let key = key(of: limit, request)
            guard let shared = limit.shared else {
                decisions.record(limit.table.take(key, limit.rate, at: now), of: index, limit.rate)
                continue
            }
            switch await take(shared, key, limit, request) {
            case .some(let decision):
                decisions.record(decision, of: index, limit.rate)
                guard decision.isAllowed else { break }
                decisions.storeTokens |= LimitDecisions.bit(index)
                if limit.countsAlong { _ = limit.table.take(key, limit.rate, at: now) }
            case nil: decisions.recordWithoutStore(index, limit, key, at: now)
            }
            // The store is not asked for what is rejected.
            guard decisions.areAllowed else { break }
        }
        plan.count(&decisions, 0..<plan.limits.count)
        guard !decisions.areAllowed else { return nil }
        for (index, limit) in plan.limits.enumerated() where decisions.took(index) {
            let key = key(of: limit, request)
            let isOfStore = decisions.storeTokens & LimitDecisions.bit(index) != 0
            if isOfStore {
                limit.shared?.giveBack(key, limit.rate, named: storeKey(of: limit, request), at: now)
            }
            if !isOfStore || limit.countsAlong { limit.table.giveBack(key, limit.rate) }
        }
        let limit = plan.limits[decisions.rejecting]
        return decisions.isStoreFailure
            ? .limitUnavailable(limit.name)
            : .rateExceeded(limit.name, retryAfter: decisions[decisions.rejecting].retryAfter(limit.rate))
    }

    private var now: Int64 { clock.monotonicTime.nanoseconds }

    /// - Returns: `nil` if the store does not respond.
    private func take(
        _ shared: SharedRateTable, _ key: RateKey, _ limit: PlannedLimit, _ request: LocalRequest
    ) async -> TokenDecision? {
        switch shared.take(key, limit.rate, at: now) {
        case .decided(let decision): return decision
        case .unavailable: return nil
        case .ask: break
        }
        let waiting = WaitingLogin()
        shared.join(key, limit.rate, named: storeKey(of: limit, request), at: now, waiting, 0)
        let reply = await waiting.reply.value(within: .nanoseconds(shared.client.longestWait))
        if reply == nil { shared.client.timedOut(at: now) }
        return reply ?? nil
    }

    private func key(of limit: PlannedLimit, _ request: LocalRequest) -> RateKey {
        var builder = limit.keyStart
        add(limit, request, to: &builder)
        return builder.build()
    }

    private func storeKey(of limit: PlannedLimit, _ request: LocalRequest) -> [UInt8] {
        var builder = StoreKeyBuilder(limit.nameBytes)
        add(limit, request, to: &builder)
        return builder.bytes
    }

    private func add(_ limit: PlannedLimit, _ request: LocalRequest, to builder: inout some LimitKeyBuilding) {
        for part in limit.parts {
            switch part {
            case .address: builder.add(address: request.address.span)
            case .host:
                unsafe Array((request.field("host") ?? "").utf8).withUnsafeBufferPointer {
                    unsafe builder.add(host: $0)
                }
            case .route: unsafe limit.routeBytes.withUnsafeBufferPointer { unsafe builder.add($0) }
            case .header(let number):
                let name = String(decoding: limit.headers[number], as: UTF8.self)
                if let value = request.field(name) {
                    unsafe Array(value.utf8).withUnsafeBufferPointer { unsafe builder.add($0) }
                } else {
                    builder.addMissing()
                }
            // A limit by the caller is a configuration error.
            case .subject, .provider: builder.addMissing()
            }
        }
    }
}

/// A login that waits for the store.
private final class WaitingLogin: TokenWaiting {
    let reply = OnceOnly<TokenDecision?>()

    func decided(_ index: Int, _ decision: TokenDecision?) { reply.complete(.some(decision)) }
}
