import MartletConfig
import MartletHTTP

/// The compiled `match` of a route.
struct RoutePattern: Sendable {
    enum Path: Sendable {
        case any
        case glob(PathGlob)
        case expression(RegularExpression)
    }

    /// Empty is any host.
    let hosts: [HostPattern]
    let path: Path
    let methods: MethodSet
    /// Conditions on the request's own headers and parameters; all must hold.
    var conditions: [RequestCondition] = []

    /// Whether the host matches. The direct test, for explanations.
    func matches(authority: Span<UInt8>) -> Bool {
        if hosts.isEmpty { return true }
        for host in hosts where host.matches(authority) { return true }
        return false
    }

    /// Why the route does not match a request; `nil` if it does, or if its expression exceeded its match limit.
    func miss(_ method: MethodSet, authority: Span<UInt8>, path: Span<UInt8>) -> RouteMiss.Reason? {
        guard matches(authority: authority) else { return .host }
        let outcome = match(path: path)
        // If neither path nor method matches, report the path, which is more helpful to operators.
        if methods.isDisjoint(with: method) { return outcome == .matched ? .method : .path }
        return outcome == .unmatched ? .path : nil
    }

    /// Tests the conditions.
    /// - Returns: the outcome, and where the value is that does not match.
    func test(
        _ head: inout RequestHead, _ bytes: Span<UInt8>
    ) -> (outcome: RegularExpression.Outcome, source: RequestConditionConfiguration.Source) {
        for condition in conditions {
            let outcome = condition.outcome(&head, bytes)
            if outcome != .matched { return (outcome, condition.source) }
        }
        return (.matched, .header)
    }

    /// Matches the path.
    func match(path: Span<UInt8>) -> RegularExpression.Outcome {
        guard path.count > 0, path[0] == .slash else { return .unmatched }
        switch self.path {
        case .any: return .matched
        case .glob(let glob): return glob.matches(path) ? .matched : .unmatched
        case .expression(let expression): return expression.match(path)
        }
    }
}
