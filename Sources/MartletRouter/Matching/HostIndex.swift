/// Finds the trees of routes that a request's host selects, without looking at each pattern.
///
/// A name is hashed from its last byte to its first, so that one pass yields the hash of every suffix that a
/// `*.example.com` could stand for.
struct HostIndex: Sendable {
    private struct Slot {
        let hash: UInt64
        /// Where the name is in ``text``.
        let start: Int32
        let count: Int32
        let isWild: Bool
        /// The root of the tree, or -1 for an empty slot.
        let root: Int32

        static let empty = Slot(hash: 0, start: 0, count: 0, isWild: false, root: -1)
    }

    private var slots: [Slot]
    private var text: [UInt8] = []
    private var addresses: [IPv6Address: Int] = [:]
    private var hasWild = false
    private let mask: Int

    init(_ roots: [HostPattern: Int]) {
        var size = 8
        while size < roots.count * 2 { size *= 2 }
        mask = size - 1
        slots = Array(repeating: .empty, count: size)
        for (pattern, root) in roots {
            switch pattern {
            case .exact(let name): insert(name, isWild: false, root)
            case .below(let name): insert(name, isWild: true, root)
            case .address(let address): addresses[address] = root
            }
        }
    }

    private mutating func insert(_ name: [UInt8], isWild: Bool, _ root: Int) {
        var hash = ByteHash()
        for byte in name.reversed() { hash.add(byte) }
        var index = Int(truncatingIfNeeded: hash.value) & mask
        while slots[index].root >= 0 { index = (index + 1) & mask }
        slots[index] = Slot(
            hash: hash.value, start: Int32(text.count), count: Int32(name.count), isWild: isWild, root: Int32(root))
        text += name
        if isWild { hasWild = true }
    }

    /// Calls `body` with the root of each tree whose host pattern matches.
    @inline(__always)
    func forEachRoot(of authority: Span<UInt8>, _ body: (Int) -> Void) {
        guard let host = HostName(in: authority) else { return }
        if host.isBracketed {
            guard !addresses.isEmpty, let address = IPv6Address(authority, from: host.start, to: host.end),
                let root = addresses[address]
            else { return }
            return body(root)
        }
        var hash = ByteHash()
        var index = host.end
        while index > host.start {
            index &-= 1
            let byte = authority[index].lowercased
            // HostName refuses empty labels, so at least one label stands before this dot.
            if byte == .dot, hasWild {
                let root = root(hash.value, isWild: true, authority, index &+ 1, host.end)
                if root >= 0 { body(root) }
            }
            hash.add(byte)
        }
        let root = root(hash.value, isWild: false, authority, host.start, host.end)
        if root >= 0 { body(root) }
    }

    private func root(_ hash: UInt64, isWild: Bool, _ authority: Span<UInt8>, _ start: Int, _ end: Int) -> Int {
        var index = Int(truncatingIfNeeded: hash) & mask
        while true {
            let slot = slots[index]
            if slot.root < 0 { return -1 }
            if slot.hash == hash, slot.isWild == isWild, Int(slot.count) == end &- start,
                equal(slot, authority, start)
            {
                return Int(slot.root)
            }
            index = (index &+ 1) & mask
        }
    }

    private func equal(_ slot: Slot, _ authority: Span<UInt8>, _ start: Int) -> Bool {
        var offset = 0
        while offset < Int(slot.count) {
            if text[Int(slot.start) &+ offset] != authority[start &+ offset].lowercased { return false }
            offset &+= 1
        }
        return true
    }
}

/// FNV-1a with a final mix.
///
/// The tables that use it hold only what the operator wrote, so clients cannot fill them with colliding keys.
struct ByteHash {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    @inline(__always)
    mutating func add(_ byte: UInt8) { state = (state ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }

    /// The hash so far, mixed so that its low bits can choose a slot.
    var value: UInt64 {
        let mixed = (state ^ (state >> 32)) &* 0x9e37_79b9_7f4a_7c15
        return mixed ^ (mixed >> 29)
    }
}
