/// Chooses one of an upstream's endpoints for a request.
///
/// It keeps what the order of requests decides: whose turn it is. What is known of each endpoint is lent for a choice.
package struct Balancer: Sendable {
    /// The position from which the search for the next choice begins.
    private var rotation = 0
    /// By position: how much of its share an endpoint is owed (smooth weighted round robin, as in nginx).
    private var owed: [Int64] = []

    package init() {}

    /// - Parameters:
    ///   - hash: of the request's key, for `hash`; `nil` where the request has none.
    ///   - avoided: the position of the endpoint that has just failed the request.
    ///   - candidates: at least one.
    /// - Returns: a position; `nil` if no endpoint may be used.
    package mutating func choose(
        _ policy: BalancePolicy, hash: UInt64?, avoiding avoided: Int?, panicThreshold: Int,
        among candidates: Span<EndpointCandidate>
    ) -> (position: Int, isPanicking: Bool)? {
        var selection = EndpointSelection()
        for position in candidates.indices { selection.count(candidates[position]) }
        let pool = selection.pool(panicThreshold: panicThreshold)
        guard pool != .none else { return nil }
        let found =
            pick(policy, hash, candidates, Rule(pool: pool, avoided: avoided ?? -1))
            // The only endpoint that may be used has just failed: it is used again.
            ?? (avoided == nil ? nil : pick(policy, hash, candidates, Rule(pool: pool, avoided: -1)))
        return found.map { ($0, pool == .all) }
    }

    /// Which candidates a choice is made among.
    private struct Rule {
        let pool: EndpointSelection.Pool
        /// The position that is left out, or −1.
        let avoided: Int

        @inline(__always)
        func allows(_ position: Int, _ candidate: EndpointCandidate) -> Bool {
            guard position != avoided else { return false }
            switch pool {
            case .usable: return candidate.isUsable && !candidate.isBackup
            case .usableWithBackups: return candidate.isUsable
            case .all: return candidate.condition != .drained
            case .none: return false
            }
        }
    }

    private mutating func pick(
        _ policy: BalancePolicy, _ hash: UInt64?, _ candidates: Span<EndpointCandidate>, _ rule: Rule
    ) -> Int? {
        var isWeighted = false
        var first: Int64 = -1
        for position in candidates.indices where rule.allows(position, candidates[position]) {
            let weight = candidates[position].weight
            if first < 0 { first = weight }
            if weight != first { isWeighted = true }
        }
        guard first >= 0 else { return nil }
        if policy == .hash, let hash { return pickByHash(hash, isWeighted, candidates, rule) }
        return isWeighted
            ? pickByWeight(countsActive: policy != .roundRobin, candidates, rule)
            : pickInTurn(countsActive: policy != .roundRobin, candidates, rule)
    }

    /// Equal weights: the next one, or that with the fewest requests; the first of equals moves on with each choice.
    private mutating func pickInTurn(
        countsActive: Bool, _ candidates: Span<EndpointCandidate>, _ rule: Rule
    ) -> Int? {
        let count = candidates.count
        rotation = (rotation &+ 1) % max(count, 1)
        var best: (position: Int, active: Int)?
        for step in 0..<count {
            let position = (rotation &+ step) % count
            let candidate = candidates[position]
            guard rule.allows(position, candidate) else { continue }
            guard countsActive else { return position }
            if let best, best.active <= candidate.active { continue }
            best = (position, candidate.active)
        }
        return best?.position
    }

    /// Different weights: each choice raises what every endpoint is owed by its weight, and the one that is owed most
    /// pays for it. Requests under way reduce a weight.
    private mutating func pickByWeight(
        countsActive: Bool, _ candidates: Span<EndpointCandidate>, _ rule: Rule
    ) -> Int? {
        if owed.count != candidates.count { owed = [Int64](repeating: 0, count: candidates.count) }
        var total: Int64 = 0
        var best: Int?
        for position in candidates.indices where rule.allows(position, candidates[position]) {
            let candidate = candidates[position]
            let divisor = countsActive ? Int64(clamping: max(candidate.active, 0)) &+ 1 : 1
            let weight = max(candidate.weight &* 1000 / divisor, candidate.weight > 0 ? 1 : 0)
            owed[position] &+= weight
            total &+= weight
            if let best, owed[best] >= owed[position] { continue }
            best = position
        }
        if let best { owed[best] &-= total }
        return best
    }

    private func pickByHash(
        _ hash: UInt64, _ isWeighted: Bool, _ candidates: Span<EndpointCandidate>, _ rule: Rule
    ) -> Int? {
        var best: Int?
        var highest: UInt64 = 0
        var lowest = Double.infinity
        for position in candidates.indices where rule.allows(position, candidates[position]) {
            let candidate = candidates[position]
            if isWeighted {
                let score = RendezvousHash.weightedScore(hash, candidate.hash, weight: candidate.weight)
                guard best == nil || score < lowest else { continue }
                (best, lowest) = (position, score)
            } else {
                let score = RendezvousHash.score(hash, candidate.hash)
                guard best == nil || score > highest else { continue }
                (best, highest) = (position, score)
            }
        }
        return best
    }
}
