extension RouteTable {
    /// An earlier route that takes every request of this one, as far as that is plain to see; never a wrong one.
    func routeHiding(_ route: Route) -> Route? {
        guard case .glob(let glob) = route.pattern.path else { return nil }
        // A request that only this route's pattern describes: whoever takes it first is the one to look at.
        var path: [UInt8] = []
        for segment in glob.segments {
            path.append(.slash)
            switch segment.kind {
            case .literal: path += glob.text[segment.start..<segment.end]
            case .any, .deep, .partial: path += Array("~any~".utf8)
            }
        }
        let host: [UInt8] =
            switch route.pattern.hosts.first {
            case nil: Array("any.invalid".utf8)
            case .exact(let name): name
            case .below(let name): Array("any.".utf8) + name
            case .address: []
            }
        var search = RouteIndex.Search(route.pattern.methods)
        index.search(authority: host.span, path: path.span, &search)
        guard search.best < route.index, !search.failed else { return nil }
        let earlier = routes[Int(search.best)]
        return earlier.pattern.covers(route.pattern) ? earlier : nil
    }
}

extension RoutePattern {
    /// Whether every request of another pattern is one of this; may say no where that is hard to see.
    func covers(_ other: RoutePattern) -> Bool {
        guard methods.isSuperset(of: other.methods), covers(hosts: other.hosts) else { return false }
        switch (path, other.path) {
        case (.any, _): return true
        case (.glob(let mine), .glob(let theirs)): return mine.covers(theirs)
        default: return false
        }
    }

    private func covers(hosts others: [HostPattern]) -> Bool {
        if hosts.isEmpty { return true }
        return !others.isEmpty && others.allSatisfy { other in hosts.contains { $0.covers(other) } }
    }
}

extension PathGlob {
    /// Whether this is the same glob, or its leading segments take the other's and `**` takes the rest.
    func covers(_ other: PathGlob) -> Bool {
        if text == other.text { return true }
        guard segments.last?.kind == .deep, segments.count - 1 <= other.segments.count else { return false }
        return zip(segments.dropLast(), other.segments).allSatisfy { mine, theirs in
            switch (mine.kind, theirs.kind) {
            case (.literal, .literal): text[mine.start..<mine.end] == other.text[theirs.start..<theirs.end]
            case (.any, .any): true
            case (.any, .literal): theirs.end > theirs.start
            default: false
            }
        }
    }
}
