private import CLinux
internal import MartletCore

/// Verified tokens and what was decided about them: a bounded table of one loop, keyed by the whole token.
///
/// Keyed hash, then length, then every byte: equality decides, so a collision cannot authenticate. An entry ends when its token
/// does; when the table is full the least recently seen of a sample goes. Tokens are wiped when they leave.
@safe struct TokenTable<Payload>: ~Copyable {
    @safe private struct Entry {
        var hash: UInt64
        var scope: UInt32
        var tokenCount: Int32
        var attachmentCount: Int32
        var weight: Int
        var expires: Int64
        var stamp: UInt32
        var memory: UnsafeMutablePointer<UInt8>
        var payload: Payload
    }

    private var slots: UnsafeMutablePointer<Int32>
    private var slotCount: Int
    private var entries: [Entry?] = []
    private var free: [Int32] = []
    private var bytes = 0
    private var clock: UInt32 = 0
    private var hand = 0
    private let byteLimit: Int
    private let key: (UInt64, UInt64)
    /// Entries at present.
    private(set) var count = 0

    /// - Parameters:
    ///   - byteLimit: how much memory tokens and attachments may take.
    ///   - key: secret randomness for the hash.
    init(byteLimit: Int, key: (UInt64, UInt64)) {
        self.byteLimit = byteLimit
        self.key = key
        slotCount = 256
        unsafe slots = .allocate(capacity: slotCount)
        unsafe slots.initialize(repeating: -1, count: slotCount)
    }

    deinit {
        for entry in entries {
            guard let entry else { continue }
            unsafe explicit_bzero(entry.memory, Int(entry.tokenCount) + Int(entry.attachmentCount))
            unsafe entry.memory.deallocate()
        }
        unsafe slots.deallocate()
    }

    /// The entry of a token in a scope, if it is there and has not ended.
    mutating func find(_ token: UnsafeBufferPointer<UInt8>, scope: UInt32, now: Int64) -> Int32? {
        let hash = unsafe self.hash(token, scope)
        var slot = Int(truncatingIfNeeded: hash) & (slotCount &- 1)
        while true {
            let index = unsafe slots[slot]
            if index == -1 { return nil }
            if index >= 0, unsafe matches(Int(index), hash, scope, token) {
                guard let expires = entries[Int(index)]?.expires, expires > now else { return nil }
                clock &+= 1
                entries[Int(index)]?.stamp = clock
                return index
            }
            slot = (slot &+ 1) & (slotCount &- 1)
        }
    }

    private func matches(
        _ index: Int, _ hash: UInt64, _ scope: UInt32, _ token: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        guard let entry = entries[index] else { return false }
        guard entry.hash == hash, entry.scope == scope, Int(entry.tokenCount) == token.count else {
            return false
        }
        guard let base = token.baseAddress else { return token.count == 0 }
        return unsafe memcmp(entry.memory, base, token.count) == 0
    }

    /// What was decided.
    func payload(_ index: Int32) -> Payload? { entries[Int(index)]?.payload }

    /// The bytes that were attached; valid until the table is changed.
    func attachment(_ index: Int32) -> UnsafeBufferPointer<UInt8> {
        guard let entry = entries[Int(index)] else { return unsafe UnsafeBufferPointer(start: nil, count: 0) }
        return unsafe UnsafeBufferPointer(
            start: entry.memory + Int(entry.tokenCount), count: Int(entry.attachmentCount))
    }

    /// Remembers a token; replaces what was there for the same token and scope.
    /// - Parameter weight: what the payload takes, which counts as the token's own bytes do.
    /// - Returns: its place, or −1 where it is too large to be remembered.
    @discardableResult
    mutating func insert(
        _ token: UnsafeBufferPointer<UInt8>, scope: UInt32, expires: Int64, now: Int64,
        attachment: UnsafeBufferPointer<UInt8>, payload: Payload, weight: Int = 0
    ) -> Int32 {
        let size = token.count + attachment.count
        guard size > 0, weight >= 0, weight <= byteLimit / 8, size <= byteLimit / 8 else { return -1 }
        unsafe remove(token, scope: scope)
        while bytes + size + weight > byteLimit, count > 0 { evictOne() }
        if (count + 1) * 2 > slotCount { grow(now: now) }
        let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
        if let base = token.baseAddress { unsafe memcpy(memory, base, token.count) }
        if let base = attachment.baseAddress { unsafe memcpy(memory + token.count, base, attachment.count) }
        clock &+= 1
        let hash = unsafe self.hash(token, scope)
        let entry = unsafe Entry(
            hash: hash, scope: scope, tokenCount: Int32(token.count), attachmentCount: Int32(attachment.count),
            weight: weight, expires: expires, stamp: clock, memory: memory, payload: payload)
        let index: Int32
        if let reused = free.popLast() {
            index = reused
            entries[Int(index)] = entry
        } else {
            index = Int32(entries.count)
            entries.append(entry)
        }
        bytes += size + weight
        count += 1
        place(index, hash)
        return index
    }

    /// The token at a place, if what stands there now is what is looked for; valid until the table is changed.
    func token(_ index: Int32, if isSame: (Payload) -> Bool) -> UnsafeBufferPointer<UInt8>? {
        guard index >= 0, Int(index) < entries.count, let entry = entries[Int(index)], isSame(entry.payload) else {
            return nil
        }
        return unsafe UnsafeBufferPointer(start: entry.memory, count: Int(entry.tokenCount))
    }

    /// Forgets everything.
    mutating func removeAll() {
        for index in entries.indices { wipe(index) }
        entries.removeAll()
        free.removeAll()
        bytes = 0
        count = 0
        unsafe slots.update(repeating: -1, count: slotCount)
    }

    /// Forgets every entry of which that holds.
    mutating func removeAll(where isVoid: (Payload) -> Bool) {
        for index in entries.indices {
            guard let entry = entries[index], isVoid(entry.payload) else { continue }
            drop(index, slot(of: Int32(index), entry.hash))
        }
    }

    /// Where an entry that is in the table stands.
    private func slot(of index: Int32, _ hash: UInt64) -> Int {
        var slot = Int(truncatingIfNeeded: hash) & (slotCount &- 1)
        while unsafe slots[slot] != index { slot = (slot &+ 1) & (slotCount &- 1) }
        return slot
    }

    private mutating func place(_ index: Int32, _ hash: UInt64) {
        var slot = Int(truncatingIfNeeded: hash) & (slotCount &- 1)
        while unsafe slots[slot] >= 0 { slot = (slot &+ 1) & (slotCount &- 1) }
        unsafe slots[slot] = index
    }

    private mutating func remove(_ token: UnsafeBufferPointer<UInt8>, scope: UInt32) {
        let hash = unsafe self.hash(token, scope)
        var slot = Int(truncatingIfNeeded: hash) & (slotCount &- 1)
        while unsafe slots[slot] != -1 {
            let index = unsafe slots[slot]
            if index >= 0, unsafe matches(Int(index), hash, scope, token) { return drop(Int(index), slot) }
            slot = (slot &+ 1) & (slotCount &- 1)
        }
    }

    /// Frees an entry and closes the gap it leaves in its probe run, so that no tombstone ever lengthens a search.
    private mutating func drop(_ index: Int, _ slot: Int) {
        wipe(index)
        free.append(Int32(index))
        count -= 1
        var gap = slot
        var next = (slot &+ 1) & (slotCount &- 1)
        while unsafe slots[next] >= 0 {
            let home = unsafe Int(truncatingIfNeeded: entries[Int(slots[next])]?.hash ?? 0) & (slotCount &- 1)
            if (next &- home) & (slotCount &- 1) >= (next &- gap) & (slotCount &- 1) {
                unsafe slots[gap] = slots[next]
                gap = next
            }
            next = (next &+ 1) & (slotCount &- 1)
        }
        unsafe slots[gap] = -1
    }

    /// Drops the least recently seen of the next few entries.
    private mutating func evictOne() {
        var victim = -1
        var oldest = UInt32.max
        var seen = 0
        var looked = 0
        while seen < 8, looked < entries.count {
            hand = hand &+ 1 < entries.count ? hand &+ 1 : 0
            looked += 1
            guard let entry = entries[hand] else { continue }
            seen += 1
            let age = entry.stamp
            if victim < 0 || age < oldest {
                victim = hand
                oldest = age
            }
        }
        guard victim >= 0, let hash = entries[victim]?.hash else { return }
        drop(victim, slot(of: Int32(victim), hash))
    }

    private mutating func wipe(_ index: Int) {
        guard let entry = entries[index] else { return }
        let size = Int(entry.tokenCount) + Int(entry.attachmentCount)
        unsafe explicit_bzero(entry.memory, size)
        unsafe entry.memory.deallocate()
        entries[index] = nil
        bytes -= size + entry.weight
    }

    /// Makes room for more entries: those that have ended go first, or a table that is rarely full would keep them all.
    private mutating func grow(now: Int64) {
        for index in entries.indices {
            guard let entry = entries[index], entry.expires <= now else { continue }
            drop(index, slot(of: Int32(index), entry.hash))
        }
        if (count + 1) * 4 > slotCount { rehash(slotCount * 2) }
    }

    private mutating func rehash(_ size: Int) {
        unsafe slots.deallocate()
        slotCount = size
        unsafe slots = .allocate(capacity: size)
        unsafe slots.initialize(repeating: -1, count: size)
        for index in entries.indices {
            if let hash = entries[index]?.hash { place(Int32(index), hash) }
        }
    }

    /// A keyed 64-bit hash of a token's length and its last 64 bytes: the signature, where tokens differ.
    ///
    /// Fit for a table in which every byte is compared before anything is believed, not for secrets.
    private func hash(_ token: UnsafeBufferPointer<UInt8>, _ scope: UInt32) -> UInt64 {
        var state = key.0 ^ UInt64(scope) &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(token.count)
        guard let base = token.baseAddress else { return state }
        var offset = max(token.count &- 64, 0)
        while offset &+ 16 <= token.count {
            let (first, second) = unsafe (martlet_load64(base + offset), martlet_load64(base + (offset &+ 8)))
            state = fold(state ^ first, second ^ key.1)
            offset &+= 16
        }
        var tail: UInt64 = 0
        while offset < token.count {
            let byte = unsafe base[offset]
            tail = fold(tail &+ 1, UInt64(byte) ^ key.1)
            offset &+= 1
        }
        return fold(state ^ tail, 0xE703_7ED1_A0B4_28DB ^ key.1)
    }

    @inline(__always)
    private func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
