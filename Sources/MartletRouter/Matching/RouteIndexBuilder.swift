/// Builds the tries of a ``RouteIndex`` route by route, then stores them in flat arrays.
struct RouteIndexBuilder {
    /// Deeper segments of a pattern are matched by the glob, which bounds the recursion of a walk.
    private static let maximumDepth = 24

    private struct Node {
        var literals: [[UInt8]: Int] = [:]
        var anyChild = -1
        var open: [RouteIndex.Entry] = []
        var exact: [RouteIndex.Entry] = []
    }

    private var nodes: [Node] = [Node()]
    private var roots: [HostPattern: Int] = [:]
    private var globSegments: [PathGlob.Segment] = []
    private var globText: [UInt8] = []
    private var expressions: [RegularExpression] = []
    private var conditional: [Bool] = []

    /// Adds a route; must be called in file order.
    mutating func add(_ pattern: RoutePattern, route: Int) {
        conditional.append(!pattern.conditions.isEmpty)
        let hosts = pattern.hosts.isEmpty ? [0] : Set(pattern.hosts).map { root(of: $0) }
        switch pattern.path {
        case .any:
            for root in hosts { addOpen(.everything, at: root, pattern, route) }
        case .glob(let glob):
            let remainder = store(glob)
            for root in hosts { add(glob, remainder, at: root, pattern, route) }
        case .expression(let expression):
            expressions.append(expression)
            let remainder = RouteIndex.Remainder.expression(Int32(expressions.count - 1))
            for root in hosts { addOpen(remainder, at: node(for: expression, below: root), pattern, route) }
        }
    }

    /// Stores the segments of a glob.
    private mutating func store(_ glob: PathGlob) -> RouteIndex.Remainder {
        let first = globSegments.count
        let offset = globText.count
        globText += glob.text
        globSegments += glob.segments.map {
            PathGlob.Segment(kind: $0.kind, start: $0.start + offset, end: $0.end + offset)
        }
        return .glob(Int32(first), Int32(globSegments.count))
    }

    private mutating func root(of host: HostPattern) -> Int {
        if let known = roots[host] { return known }
        nodes.append(Node())
        roots[host] = nodes.count - 1
        return nodes.count - 1
    }

    private mutating func addOpen(
        _ remainder: RouteIndex.Remainder, at node: Int, _ pattern: RoutePattern, _ route: Int
    ) {
        nodes[node].open.append(
            RouteIndex.Entry(route: Int32(route), remainder: remainder, methods: pattern.methods))
    }

    private mutating func add(
        _ glob: PathGlob, _ remainder: RouteIndex.Remainder, at root: Int, _ pattern: RoutePattern, _ route: Int
    ) {
        var node = root
        var depth = 0
        for segment in glob.segments {
            guard depth < Self.maximumDepth else { break }
            switch segment.kind {
            case .literal: node = child(of: node, Array(glob.text[segment.start..<segment.end]))
            case .any: node = anyChild(of: node)
            case .partial, .deep:
                let matchesAll = segment.kind == .deep && depth == glob.segments.count - 1
                return addOpen(matchesAll ? .everything : remainder, at: node, pattern, route)
            }
            depth += 1
        }
        guard depth == glob.segments.count else {
            return addOpen(remainder, at: node, pattern, route)
        }
        nodes[node].exact.append(
            RouteIndex.Entry(route: Int32(route), remainder: .everything, methods: pattern.methods))
    }

    /// The node for the literal segments with which every match of an expression begins.
    private mutating func node(for expression: RegularExpression, below root: Int) -> Int {
        let prefix = RegularExpression.literalPrefix(of: expression.source)
        guard prefix.first == .slash else { return root }
        var node = root
        // The last part may continue in the path, so it is not a whole segment.
        for segment in prefix.dropFirst().split(separator: .slash, omittingEmptySubsequences: false).dropLast()
            .prefix(Self.maximumDepth)
        {
            node = child(of: node, Array(segment))
        }
        return node
    }

    private mutating func child(of node: Int, _ segment: [UInt8]) -> Int {
        if let known = nodes[node].literals[segment] { return known }
        nodes.append(Node())
        nodes[node].literals[segment] = nodes.count - 1
        return nodes.count - 1
    }

    private mutating func anyChild(of node: Int) -> Int {
        if nodes[node].anyChild >= 0 { return nodes[node].anyChild }
        nodes.append(Node())
        nodes[node].anyChild = nodes.count - 1
        return nodes.count - 1
    }

    /// The finished index.
    func build() -> RouteIndex {
        var flat: [RouteIndex.Node] = []
        var entries: [RouteIndex.Entry] = []
        for (number, node) in nodes.enumerated() {
            var here = RouteIndex.Node()
            here.seed = WordHash(seed: UInt64(number))
            if let first = node.open.first, case .everything = first.remainder {
                here.route = first.route
                here.methods = first.methods
            }
            here.openStart = Int32(entries.count)
            entries += node.open
            here.openEnd = Int32(entries.count)
            here.exactStart = Int32(entries.count)
            entries += node.exact
            here.exactEnd = Int32(entries.count)
            here.anyChild = Int32(node.anyChild)
            here.literalParent = node.literals.isEmpty ? -1 : Int32(number)
            here.lowest = min(node.open.first?.route ?? .max, node.exact.first?.route ?? .max)
            flat.append(here)
        }
        // Children come after their parents, so one pass from the end carries the lowest index up.
        for index in nodes.indices.reversed() {
            for child in nodes[index].literals.values {
                flat[index].lowest = min(flat[index].lowest, flat[child].lowest)
            }
            if nodes[index].anyChild >= 0 {
                flat[index].lowest = min(flat[index].lowest, flat[nodes[index].anyChild].lowest)
            }
        }
        let (edges, labels) = layOutEdges()
        return RouteIndex(
            nodes: flat, entries: entries, edges: edges, labels: labels, globSegments: globSegments, globText: globText,
            expressions: ExpressionList(expressions), conditional: conditional,
            hosts: HostIndex(roots), anyHost: 0)
    }

    private func layOutEdges() -> ([RouteIndex.Edge], WordPool) {
        var size = 8
        while size < nodes.count * 2 { size *= 2 }
        var edges = Array(repeating: RouteIndex.Edge.empty, count: size)
        var labels = WordPool()
        for parent in nodes.indices {
            for (segment, child) in nodes[parent].literals {
                let hash = WordHash(seed: UInt64(parent), of: WordPool.words(of: segment)).value
                var slot = Int(truncatingIfNeeded: hash) & (size - 1)
                while edges[slot].child >= 0 { slot = (slot + 1) & (size - 1) }
                edges[slot] = RouteIndex.Edge(
                    hash: hash, parent: Int32(parent), child: Int32(child), start: Int32(labels.add(segment)),
                    count: Int32(segment.count))
            }
        }
        return (edges, labels)
    }
}
