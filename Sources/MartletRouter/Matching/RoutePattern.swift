/// What a route's `match` asks of a request.
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

    /// Whether the host is one of the route's; the plain way, for explanations.
    func takes(authority: Span<UInt8>) -> Bool {
        if hosts.isEmpty { return true }
        for host in hosts where host.matches(authority) { return true }
        return false
    }

    /// Why the route does not take a request; `nil` if it does, or if its expression could not tell.
    func miss(_ asked: MethodSet, authority: Span<UInt8>, path: Span<UInt8>) -> RouteMiss.Reason? {
        guard takes(authority: authority) else { return .host }
        let outcome = take(path: path)
        // The path is named first where neither fits: it is what the operator looks at first.
        if methods.isDisjoint(with: asked) { return outcome == .matched ? .method : .path }
        return outcome == .unmatched ? .path : nil
    }

    /// Whether the path is one of the route's.
    func take(path: Span<UInt8>) -> RegularExpression.Outcome {
        guard path.count > 0, path[0] == .slash else { return .unmatched }
        switch self.path {
        case .any: return .matched
        case .glob(let glob): return glob.matches(path) ? .matched : .unmatched
        case .expression(let expression): return expression.match(path)
        }
    }
}
