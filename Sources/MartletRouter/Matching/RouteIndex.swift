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
    ///
    /// A walk reads all it needs of it from one cache line.
    struct Node: Sendable {
        /// What the hash of a segment below begins with.
        var seed = WordHash(seed: 0)
        /// What the first of the open routes takes, where it is one that takes everything.
        var methods: MethodSet = []
        /// Its route index; `max` where there is no such route.
        var route: Int32 = .max
        /// The routes that may take paths going on from here: a range of ``RouteIndex/entries``.
        var openStart: Int32 = 0
        var openEnd: Int32 = 0
        /// The routes that take exactly the path that ends here.
        var exactStart: Int32 = 0
        var exactEnd: Int32 = 0
        /// The node below for a segment of any text, or -1.
        var anyChild: Int32 = -1
        /// Its own number where there are nodes below for segments of a certain text, else -1.
        var literalParent: Int32 = -1
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
        /// Whether one of those routes names methods; kept likewise.
        var namesMethods = false

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
    @inline(__always)
    func search(authority: Span<UInt8>, path: Span<UInt8>, _ search: inout Search) {
        guard path.count > 0, path[0] == .slash else { return }
        if !hosts.isEmpty { searchHosts(authority, path, &search) }
        walk(anyHost, from: 1, path, &search)
    }

    @inline(never)
    private func searchHosts(_ authority: Span<UInt8>, _ path: Span<UInt8>, _ search: inout Search) {
        hosts.forEachRoot(of: authority) { root in walk(root, from: 1, path, &search) }
    }

    /// Tries what hangs on a node, then goes on with the segment at `cursor`.
    ///
    /// Recursion is only for a node that has two ways on, and as deep as the tree, which ``RouteIndexBuilder`` bounds.
    /// Numbers of nodes and entries are the builder's own and never a request's: they are not checked again.
    private func walk(_ root: Int, from first: Int, _ path: Span<UInt8>, _ search: inout Search) {
        unsafe nodes.withUnsafeBufferPointer { nodes in
            guard let nodes = nodes.baseAddress else { return }
            var node = unsafe nodes + root
            var cursor = first
            while unsafe node.pointee.lowest < search.best {
                unsafe scan(node, path, &search)
                guard cursor <= path.count else {
                    return unsafe scanAll(node.pointee.exactStart, node.pointee.exactEnd, path, &search)
                }
                guard unsafe node.pointee.literalParent & node.pointee.anyChild >= 0 else { return }
                var hash = unsafe node.pointee.seed
                let end = segment(of: path, from: cursor, &hash)
                let child = unsafe child(of: node.pointee.literalParent, hash, path, cursor, end)
                if unsafe node.pointee.anyChild >= 0, end > cursor {
                    if child >= 0 { walk(child, from: end &+ 1, path, &search) }
                    unsafe node = unsafe nodes + Int(node.pointee.anyChild)
                } else {
                    guard child >= 0 else { return }
                    unsafe node = unsafe nodes + child
                }
                cursor = end &+ 1
            }
        }
    }

    /// Finds where a path segment ends and adds its bytes to a hash.
    @inline(__always)
    private func segment(of path: Span<UInt8>, from start: Int, _ hash: inout WordHash) -> Int {
        var offset = start
        while offset < path.count {
            let word = path.word(at: offset)
            let slashes = ByteWord.places(of: .slash, in: word)
            guard slashes == 0 else {
                let count = slashes.trailingZeroBitCount &>> 3
                // Of the byte that is a slash the highest bit is set: what is below the byte is below that bit, seven lower.
                if count > 0 { hash.add(word & ((slashes & (0 &- slashes)) &>> 7 &- 1)) }
                return offset &+ count
            }
            hash.add(word)
            offset &+= 8
        }
        return min(offset, path.count)
    }

    /// Tries the open routes of a node.
    ///
    /// What most routes ask stands here; the rest is elsewhere, so that a walk needs few registers.
    @inline(__always)
    private func scan(_ node: UnsafePointer<Node>, _ path: Span<UInt8>, _ search: inout Search) {
        guard unsafe node.pointee.openStart < node.pointee.openEnd else { return }
        guard unsafe node.pointee.route < search.best, unsafe !node.pointee.methods.isDisjoint(with: search.methods),
            !search.collectsMethods
        else { return unsafe scanAll(node.pointee.openStart, node.pointee.openEnd, path, &search) }
        search.best = unsafe node.pointee.route
        search.failed = false
    }

    @inline(never)
    private func scanAll(_ start: Int32, _ end: Int32, _ path: Span<UInt8>, _ search: inout Search) {
        var index = Int(start)
        while index < Int(end) {
            let entry = entries[index]
            if entry.route >= search.best { return }
            if search.collectsMethods {
                let outcome = test(entry.remainder, path)
                if case .matched = outcome { search.allowed.formUnion(entry.methods) }
                if outcome != .unmatched, entry.methods != .any { search.namesMethods = true }
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

    @inline(__always)
    private func child(of node: Int32, _ hash: WordHash, _ path: Span<UInt8>, _ start: Int, _ end: Int) -> Int {
        guard node >= 0 else { return -1 }
        return unsafe edges.withUnsafeBufferPointer { edges in
            let mask = edges.count &- 1
            let count = end &- start
            var slot = Int(truncatingIfNeeded: hash.value) & mask
            while true {
                let edge = unsafe edges[slot]
                if edge.child < 0 { return -1 }
                // Of one word and one seed no other word has the same hash (``WordHash/add(_:)``).
                if edge.hash == hash.value, edge.parent == node, Int(edge.count) == count,
                    count <= 8 || equal(edge, path, start, end)
                {
                    return Int(edge.child)
                }
                slot = (slot &+ 1) & mask
            }
        }
    }

    @inline(never)
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
