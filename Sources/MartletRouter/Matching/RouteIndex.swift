/// Finds the first route that takes a request, looking only at routes whose leading segments and host fit.
///
/// Routes stand in one tree per host pattern (and one for any host), under the leading segments of their path that are
/// literal or `*`. A path walks down each tree that its host selects; what hangs on the nodes it meets is tried in file
/// order, and a subtree whose routes all come later than the best match so far is not entered.
struct RouteIndex: Sendable {
    /// What remains to be asked of a path when a walk has come to the route's node.
    enum Remainder: Sendable {
        /// Nothing: the route takes everything below its node.
        case everything
        /// The whole glob: a range of ``RouteIndex/globSegments``.
        case glob(Int32, Int32)
        /// The whole expression, at this place of ``RouteIndex/expressions``.
        case expression(Int32)
    }

    /// A route that hangs on a node.
    struct Entry: Sendable {
        let route: Int32
        let remainder: Remainder
        let methods: MethodSet
    }

    /// A place in a tree: the segments from the root down to it.
    struct Node: Sendable {
        /// The routes that may take paths going on from here: a range of ``RouteIndex/entries``.
        var openStart: Int32 = 0
        var openEnd: Int32 = 0
        /// The routes that take exactly the path that ends here.
        var exactStart: Int32 = 0
        var exactEnd: Int32 = 0
        /// The node below for a segment of any text, or -1.
        var anyChild: Int32 = -1
        var hasLiteralChildren = false
        /// The lowest route index on this node or below it.
        var lowest: Int32 = .max
    }

    /// The way from a node to one below it by a literal segment.
    struct Edge: Sendable {
        let hash: UInt64
        let parent: Int32
        /// -1 for an empty slot.
        let child: Int32
        /// Where the segment is in ``RouteIndex/labels``.
        let start: Int32
        let count: Int32

        static let empty = Edge(hash: 0, parent: -1, child: -1, start: 0, count: 0)
    }

    /// The best match so far.
    struct Search {
        let methods: MethodSet
        var best: Int32 = .max
        /// Whether the best is a route whose expression gave up: nothing may be decided then.
        var failed = false
        /// The methods of routes that match but for the method; kept only when `collectsMethods`.
        var allowed: MethodSet = []
        var collectsMethods = false

        init(_ methods: MethodSet) { self.methods = methods }
    }

    let nodes: [Node]
    let entries: [Entry]
    /// Open addressing; its count is a power of two.
    let edges: [Edge]
    let labels: WordPool
    /// The segments of all globs, with offsets into ``globText``; flat, so that matching touches no reference count.
    let globSegments: [PathGlob.Segment]
    let globText: [UInt8]
    let expressions: ExpressionList
    let hosts: HostIndex
    /// The tree of the routes for any host.
    let anyHost: Int

    /// - Parameter path: normalised.
    func search(authority: Span<UInt8>, path: Span<UInt8>, _ search: inout Search) {
        guard path.count > 0, path[0] == .slash else { return }
        hosts.forEachRoot(of: authority) { root in walk(root, from: 1, path, &search) }
        walk(anyHost, from: 1, path, &search)
    }

    /// Tries what hangs on a node, then goes on with the segment at `cursor`.
    ///
    /// Recursion is as deep as the tree, which ``RouteIndexBuilder`` bounds.
    private func walk(_ node: Int, from cursor: Int, _ path: Span<UInt8>, _ search: inout Search) {
        let here = nodes[node]
        guard here.lowest < search.best else { return }
        scan(here.openStart, here.openEnd, path, &search)
        guard cursor <= path.count else { return scan(here.exactStart, here.exactEnd, path, &search) }
        guard here.hasLiteralChildren || here.anyChild >= 0 else { return }
        var hash = WordHash(seed: UInt64(truncatingIfNeeded: node))
        let end = segment(of: path, from: cursor, &hash)
        if here.hasLiteralChildren {
            let child = child(of: node, hash, path, cursor, end)
            if child >= 0 { walk(child, from: end &+ 1, path, &search) }
        }
        if here.anyChild >= 0, end > cursor { walk(Int(here.anyChild), from: end &+ 1, path, &search) }
    }

    /// Finds where a path segment ends and adds its bytes to a hash.
    @inline(__always)
    private func segment(of path: Span<UInt8>, from start: Int, _ hash: inout WordHash) -> Int {
        var offset = start
        while offset < path.count {
            let word = path.word(at: offset)
            let slashes = ByteWord.places(of: .slash, in: word)
            let count = min(slashes == 0 ? 8 : slashes.trailingZeroBitCount / 8, path.count &- offset)
            if count > 0 { hash.add(ByteWord.prefix(word, count)) }
            offset &+= count
            if count < 8 { break }
        }
        return offset
    }

    private func scan(_ start: Int32, _ end: Int32, _ path: Span<UInt8>, _ search: inout Search) {
        var index = Int(start)
        while index < Int(end) {
            let entry = entries[index]
            if entry.route >= search.best { return }
            if search.collectsMethods {
                if case .matched = test(entry.remainder, path) { search.allowed.formUnion(entry.methods) }
            } else if !entry.methods.isDisjoint(with: search.methods) {
                switch test(entry.remainder, path) {
                case .unmatched: break
                case .matched:
                    search.best = entry.route
                    search.failed = false
                    return
                case .failed:
                    search.best = entry.route
                    search.failed = true
                    return
                }
            }
            index &+= 1
        }
    }

    private func test(_ remainder: Remainder, _ path: Span<UInt8>) -> RegularExpression.Outcome {
        switch remainder {
        case .everything: .matched
        case .glob(let start, let end):
            PathGlob.matches(path, globSegments.span, from: Int(start), to: Int(end), of: globText.span)
                ? .matched : .unmatched
        case .expression(let index): expressions.match(path, with: Int(index))
        }
    }

    private func child(of node: Int, _ hash: WordHash, _ path: Span<UInt8>, _ start: Int, _ end: Int) -> Int {
        let mask = edges.count &- 1
        var slot = Int(truncatingIfNeeded: hash.value) & mask
        while true {
            let edge = edges[slot]
            if edge.child < 0 { return -1 }
            if edge.hash == hash.value, Int(edge.parent) == node, Int(edge.count) == end &- start,
                equal(edge, path, start, end)
            {
                return Int(edge.child)
            }
            slot = (slot &+ 1) & mask
        }
    }

    private func equal(_ edge: Edge, _ path: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
        var place = Int(edge.start)
        var offset = start
        while offset < end {
            if labels.words[place] != ByteWord.prefix(path.word(at: offset), end &- offset) { return false }
            place &+= 1
            offset &+= 8
        }
        return true
    }
}
