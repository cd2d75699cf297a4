/// Finds the first route that matches a request, testing only routes whose host and leading segments match.
///
/// Routes are stored in one trie per host pattern (and one for any host), keyed by the leading segments of their path
/// that are literal or `*`. A search descends each trie that the host selects and tests the entries of the visited
/// nodes in file order. It skips subtrees whose routes all come after the best match so far.
struct RouteIndex: Sendable {
    /// The remaining test of a path at the route's node.
    enum Remainder: Sendable {
        /// None: the route matches everything below its node.
        case everything
        /// The whole glob: a range of ``RouteIndex/globSegments``.
        case glob(Int32, Int32)
        /// The whole expression, at this index of ``RouteIndex/expressions``.
        case expression(Int32)
    }

    /// A route of a node.
    struct Entry: Sendable {
        let route: Int32
        let remainder: Remainder
        let methods: MethodSet
    }

    /// A node of a trie, for a sequence of segments. It fits into one cache line.
    struct Node: Sendable {
        /// The seed of the hashes of child segments.
        var seed = WordHash(seed: 0)
        /// The methods of the first open route, if that route matches everything.
        var methods: MethodSet = []
        /// The index of that route; `max` if there is none.
        var route: Int32 = .max
        /// The routes that may match paths that continue below this node: a range of ``RouteIndex/entries``.
        var openStart: Int32 = 0
        var openEnd: Int32 = 0
        /// The routes that match only paths that end at this node.
        var exactStart: Int32 = 0
        var exactEnd: Int32 = 0
        /// The child for a segment of any text, or -1.
        var anyChild: Int32 = -1
        /// Its own index if it has children for literal segments, otherwise -1.
        var literalParent: Int32 = -1
        /// The lowest route index at this node or below it.
        var lowest: Int32 = .max
    }

    /// An edge from a node to a child by a literal segment.
    struct Edge: Sendable {
        let hash: UInt64
        let parent: Int32
        /// -1 for an empty slot.
        let child: Int32
        /// The index of the segment's first word in ``RouteIndex/labels``.
        let start: Int32
        let count: Int32

        static let empty = Edge(hash: 0, parent: -1, child: -1, start: 0, count: 0)
    }

    /// The best match so far.
    struct Search {
        let methods: MethodSet
        var best: Int32 = .max
        /// Whether the expression of the best route exceeded its match limit, so that the request must be rejected.
        var failed = false
        /// The methods of routes that match except for the method; collected only if `collectsMethods`.
        var allowed: MethodSet = []
        private(set) var collectsMethods = false
        /// Routes up to this index are left out.
        private(set) var last: Int32 = -1
        /// Whether it is more than a search for the first route.
        private(set) var isUnusual = false
        /// Whether one of those routes names methods; collected only if `collectsMethods`.
        var namesMethods = false

        init(_ methods: MethodSet) { self.methods = methods }

        /// Searches for the first route after another one.
        init(_ methods: MethodSet, after route: Int) {
            self.methods = methods
            last = Int32(truncatingIfNeeded: route)
            isUnusual = true
        }

        /// Collects methods instead.
        mutating func collectMethods() {
            collectsMethods = true
            isUnusual = true
        }
    }

    let nodes: [Node]
    let entries: [Entry]
    /// A hash table with open addressing; its count is a power of two.
    let edges: [Edge]
    let labels: WordPool
    /// The segments of all globs, with offsets into ``globText``; flat, so that matching needs no reference counting.
    let globSegments: [PathGlob.Segment]
    let globText: [UInt8]
    let expressions: ExpressionList
    /// For each route, whether it has conditions besides host, path and method.
    let conditional: [Bool]
    let hosts: HostIndex
    /// The root of the routes for any host.
    let anyHost: Int

    /// - Parameter path: normalized.
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

    /// Tests the entries of a node, then continues with the segment at `cursor`.
    ///
    /// It recurses only for a node with two matching children, at most as deep as the trie, which ``RouteIndexBuilder``
    /// bounds. Indices of nodes and entries come from the builder, never from a request, and are not checked again.
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
            let slashes = ByteWord.matches(of: .slash, in: word)
            guard slashes == 0 else {
                let count = slashes.trailingZeroBitCount &>> 3
                // The mask has the high bit of the slash byte: the bytes before it are below that bit shifted by seven.
                if count > 0 { hash.add(word & ((slashes & (0 &- slashes)) &>> 7 &- 1)) }
                return offset &+ count
            }
            hash.add(word)
            offset &+= 8
        }
        return min(offset, path.count)
    }

    /// Tests the open routes of a node.
    ///
    /// Inlines only the common case, so that a walk needs few registers.
    @inline(__always)
    private func scan(_ node: UnsafePointer<Node>, _ path: Span<UInt8>, _ search: inout Search) {
        guard unsafe node.pointee.openStart < node.pointee.openEnd else { return }
        guard unsafe node.pointee.route < search.best, unsafe !node.pointee.methods.isDisjoint(with: search.methods),
            !search.isUnusual
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
            if search.isUnusual {
                visit(entry, path, &search)
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

    /// Tests an entry in a search for more than the first route.
    @inline(never)
    private func visit(_ entry: Entry, _ path: Span<UInt8>, _ search: inout Search) {
        if search.collectsMethods {
            let outcome = test(entry.remainder, path)
            // What a route with conditions allows is allowed to some requests alone.
            if case .matched = outcome, !conditional[Int(entry.route)] { search.allowed.formUnion(entry.methods) }
            if outcome != .unmatched, entry.methods != .any { search.namesMethods = true }
            return
        }
        guard entry.route > search.last, !entry.methods.isDisjoint(with: search.methods) else { return }
        let outcome = test(entry.remainder, path)
        guard outcome != .unmatched else { return }
        search.best = entry.route
        search.failed = outcome == .failed
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
                // For a single word and an equal seed, equal hashes imply equal words (``WordHash/add(_:)``).
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
        var wordIndex = Int(edge.start)
        var offset = start
        while offset < end {
            if labels.words[wordIndex] != ByteWord.prefix(path.word(at: offset), end &- offset) { return false }
            wordIndex &+= 1
            offset &+= 8
        }
        return true
    }
}
