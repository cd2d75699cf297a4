internal import MartletAuthenticator
internal import MartletCore
internal import MartletHTTP
internal import MartletLimits
internal import MartletResponder

/// Counts requests of routes with limits, and rejects those for which there is no room.
extension RequestRouter {
    /// Counts a request before its credential is looked at.
    /// - Returns: `false` if it was rejected.
    @inline(never)
    mutating func admit(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        // After a verification, or after a reload meanwhile, the request comes here again.
        guard !loop.exchanges[exchange].record.limits.isEntered else { return true }
        let index = loop.context.snapshot.compiledRoutes[route].limitPlan
        // The snapshot retains the plan: no need to retain it again for the call.
        return unsafe Unmanaged.passUnretained(loop.context.snapshot.routeLimits.plans[index])
            ._withUnsafeGuaranteedRef { plan in
                loop.exchanges[exchange].record.limits.enter()
                if plan.concurrency < .max,
                    !loop.exchanges[exchange].record.limits.enter(plan.counter, maximum: plan.concurrency)
                {
                    loop.reject(exchange, .tooManyUnderWay)
                    return false
                }
                return unsafe takeTokens(exchange, plan, 0..<plan.countBeforeCaller, bytes, &loop)
            }
    }

    /// Counts a request whose caller is authorized, by the limits that need the caller.
    /// - Returns: `false` if it was rejected.
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
                if unsafe takeTokens(exchange, plan, range, bytes, &loop) { return true }
                return false
            }
    }

    /// Takes a token of each of some limits; if one of them has none, the others get theirs back.
    private mutating func takeTokens(
        _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ range: Range<Int>,
        _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        var decisions = LimitDecisions()
        for index in range {
            let key = unsafe key(of: plan.limits[index], exchange, bytes, &loop)
            let decision = plan.limits[index].table.take(key, plan.limits[index].rate, at: loop.now)
            decisions.record(decision, of: index, plan.limits[index].rate)
        }
        guard decisions.areAllowed else {
            // Limits of the first phase took theirs before.
            for index in 0..<range.upperBound where index < range.lowerBound || decisions.took(index) {
                let key = unsafe key(of: plan.limits[index], exchange, bytes, &loop)
                plan.limits[index].table.giveBack(key, plan.limits[index].rate)
                decisions.gaveBack(index, plan.limits[index].rate)
            }
            announce(decisions, exchange, plan, range, continues: false, &loop)
            let limit = plan.limits[decisions.rejecting]
            let retryAfter = decisions[decisions.rejecting].retryAfter(limit.rate)
            loop.reject(exchange, .rateExceeded(limit.name, retryAfter: retryAfter))
            return false
        }
        if plan.announces {
            announce(decisions, exchange, plan, range, continues: range.lowerBound > 0, &loop)
        }
        return true
    }

    /// Has the response tell what is left of some limits.
    /// - Parameter continues: after those of the first phase.
    private func announce(
        _ decisions: LimitDecisions, _ exchange: Handle<Exchange>, _ plan: RouteLimitPlan, _ range: Range<Int>,
        continues: Bool, _ loop: inout LoopState
    ) {
        guard !range.isEmpty else { return }
        if !continues { loop.exchanges[exchange].record.limits.announce(plan.policy) }
        for index in range {
            let isFirst = index == range.lowerBound && !continues
            loop.exchanges[exchange].record.limits.announce(decisions[index], of: plan.limits[index], isFirst: isFirst)
        }
    }

    /// What a limit counts a request by.
    private mutating func key(
        of limit: PlannedLimit, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ loop: inout LoopState
    ) -> RateKey {
        var builder = RateKeyBuilder()
        for index in limit.parts.indices {
            switch limit.parts[index] {
            case .address: addAddress(exchange, to: &builder, &loop)
            case .host: unsafe builder.add(host: bytes[head.authority])
            case .route(let hash): builder.add(hash: hash)
            case .header(let number): unsafe addHeader(limit.headers[number], bytes, to: &builder)
            case .subject:
                let subject = loop.exchanges[exchange].credential.subject
                if subject == 0 { builder.addMissing() } else { builder.add(hash: subject) }
            case .provider:
                let provider = Int(loop.exchanges[exchange].credential.provider)
                if loop.context.snapshot.providerTexts.indices.contains(provider) {
                    unsafe loop.context.snapshot.providerTexts[provider].withUnsafeBufferPointer {
                        unsafe builder.add($0)
                    }
                } else {
                    builder.addMissing()
                }
            }
        }
        return builder.key()
    }

    /// Adds the client's address: that of the peer, or of the client that trusted proxies name.
    private func addAddress(
        _ exchange: Handle<Exchange>, to builder: inout RateKeyBuilder, _ loop: inout LoopState
    ) {
        if loop.exchanges[exchange].record.forwardedNetwork.isEmpty {
            let downstream = loop.exchanges[exchange].downstream
            unsafe loop.downstreams[downstream].origin.address.bytes.withUnsafeBufferPointer {
                unsafe builder.add(address: $0)
            }
        } else {
            unsafe loop.exchanges[exchange].record.forwardedNetwork.withUnsafeBufferPointer {
                unsafe builder.add(address: $0)
            }
        }
    }

    /// Adds the value of the first field with a name.
    private mutating func addHeader(
        _ name: [UInt8], _ bytes: UnsafeBufferPointer<UInt8>, to builder: inout RateKeyBuilder
    ) {
        for index in 0..<head.fields.count {
            let range = head.fields[index].name
            guard range.count == name.count else { continue }
            let field = unsafe bytes[range]
            var isEqual = true
            for position in 0..<name.count where isEqual {
                let byte = unsafe field[position]
                isEqual = (byte &- 0x41 < 26 ? byte | 0x20 : byte) == name[position]
            }
            if isEqual { return unsafe builder.add(bytes[head.fields[index].value]) }
        }
        builder.addMissing()
    }
}

/// Responses that tell what is left.
enum RateLimitFields {
    /// Adds what is left of the limits to the pending head of a response.
    static func append(of exchange: Handle<Exchange>, _ loop: inout LoopState) {
        guard loop.exchanges[exchange].record.limits.isAnnounced else { return }
        // Before the empty line that ends the head.
        loop.context.scratch.pending[exchange].truncate(to: loop.context.scratch.pending[exchange].count &- 2)
        let lent = unsafe loop.exchanges.all.address(of: exchange)
        unsafe lent.pointee.record.limits.append(to: &loop.context.scratch.pending[exchange])
        loop.context.scratch.pending[exchange].append("\r\n\r\n")
    }
}
