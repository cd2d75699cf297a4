/// Finds the route trees of a request's host without testing each pattern.
struct HostIndex: Sendable {
    private struct Slot {
        let hash: UInt64
        /// The index of the name's first word in ``names``.
        let start: Int32
        let count: Int32
        let kind: Kind
        /// The root of the tree, or -1 for an empty slot.
        let root: Int32

        static let empty = Slot(hash: 0, start: 0, count: 0, kind: .exact, root: -1)
    }

    /// The kind of a name; part of the hash, so that one table serves both.
    private enum Kind: UInt8 {
        case exact, wild
    }

    private var slots: [Slot]
    private var names = WordPool()
    private var addresses: [IPv6Address: Int] = [:]
    /// One bit for each length of a wildcard suffix, modulo 64, so that most suffixes of a host need not be hashed.
    private var wildLengths: UInt64 = 0
    private let mask: Int
    let isEmpty: Bool

    init(_ roots: [HostPattern: Int]) {
        var size = 8
        while size < roots.count * 2 { size *= 2 }
        mask = size - 1
        isEmpty = roots.isEmpty
        slots = Array(repeating: .empty, count: size)
        for (pattern, root) in roots {
            switch pattern {
            case .exact(let name): insert(name, .exact, root)
            case .subdomains(let name):
                insert(name, .wild, root)
                wildLengths |= 1 << UInt64(name.count % 64)
            case .address(let address): addresses[address] = root
            }
        }
    }

    private mutating func insert(_ name: [UInt8], _ kind: Kind, _ root: Int) {
        let hash = WordHash(seed: Self.seed(kind, name.count), of: WordPool.words(of: name)).value
        var index = Int(truncatingIfNeeded: hash) & mask
        while slots[index].root >= 0 { index = (index + 1) & mask }
        slots[index] = Slot(
            hash: hash, start: Int32(names.add(name)), count: Int32(name.count), kind: kind, root: Int32(root))
    }

    @inline(__always)
    private static func seed(_ kind: Kind, _ count: Int) -> UInt64 {
        UInt64(kind.rawValue) &<< 32 | UInt64(truncatingIfNeeded: count)
    }

    /// Calls `body` with the root of each tree whose host pattern matches.
    @inline(__always)
    func forEachRoot(of authority: Span<UInt8>, _ body: (Int) -> Void) {
        guard let host = HostName(in: authority) else { return }
        if host.isBracketed {
            let root = rootOfAddress(authority, host)
            if root >= 0 { body(root) }
            return
        }
        let root = root(.exact, authority, from: host.start, to: host.end)
        if root >= 0 { body(root) }
        guard wildLengths != 0 else { return }
        // HostName rejects empty labels, so at least one label precedes each dot.
        var index = host.start
        while index < host.end {
            if authority[index] == .dot, wildLengths &>> UInt64((host.end &- index &- 1) & 63) & 1 != 0 {
                let root = self.root(.wild, authority, from: index &+ 1, to: host.end)
                if root >= 0 { body(root) }
            }
            index &+= 1
        }
    }

    @inline(never)
    private func rootOfAddress(_ authority: Span<UInt8>, _ host: HostName) -> Int {
        guard !addresses.isEmpty, let address = IPv6Address(authority, from: host.start, to: host.end) else {
            return -1
        }
        return addresses[address] ?? -1
    }

    private func root(_ kind: Kind, _ authority: Span<UInt8>, from start: Int, to end: Int) -> Int {
        var hash = WordHash(seed: Self.seed(kind, end &- start))
        var offset = start
        while offset < end {
            hash.add(ByteWord.lowercased(ByteWord.prefix(authority.word(at: offset), end &- offset)))
            offset &+= 8
        }
        var index = Int(truncatingIfNeeded: hash.value) & mask
        while true {
            let slot = slots[index]
            if slot.root < 0 { return -1 }
            // The hash covers the kind and the length; equality is decided on the bytes.
            if slot.hash == hash.value, slot.kind == kind, Int(slot.count) == end &- start,
                equal(slot, authority, start, end)
            {
                return Int(slot.root)
            }
            index = (index &+ 1) & mask
        }
    }

    private func equal(_ slot: Slot, _ authority: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
        var wordIndex = Int(slot.start)
        var offset = start
        while offset < end {
            let word = ByteWord.lowercased(ByteWord.prefix(authority.word(at: offset), end &- offset))
            if names.words[wordIndex] != word { return false }
            wordIndex &+= 1
            offset &+= 8
        }
        return true
    }
}
