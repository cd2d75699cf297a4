private import Glibc
internal import MartletCore

/// Verified tokens and the decisions about them: a bounded table of one loop, keyed by the whole token.
///
/// Keyed hash, then length, then every byte: equality decides, so a collision cannot authenticate. An entry expires
/// with its token; a full table evicts the least recently used of a sample. Tokens are wiped when they are removed.
///
/// With many tokens a lookup costs cache misses, not instructions: all that is compared before the bytes is in the
/// slot, and token and entry are then fetched side by side.
@safe struct TokenTable<Payload>: ~Copyable {
    /// A slot of the hash table: two of them are one cache line.
    @safe private struct Slot {
        var hash: UInt64
        /// The token, followed by its attachment.
        var memory: UnsafeMutablePointer<UInt8>?
        var scope: UInt32
        var tokenCount: Int32
        /// Index of the entry; −1 in a free slot.
        var index: Int32
        /// When it was last used.
        var stamp: UInt32

        static var free: Slot {
            unsafe Slot(hash: 0, memory: nil, scope: 0, tokenCount: -1, index: -1, stamp: 0)
        }
    }

    /// An entry keeps its index as long as it is in the table, wherever its slot moves.
    @safe private struct Entry {
        let memory: UnsafeMutablePointer<UInt8>
        let tokenCount: Int32
        let attachmentCount: Int32
        let expires: Int64
        let weight: Int
        let payload: Payload
    }

    private var slots: UnsafeMutablePointer<Slot>
    private var slotCount: Int
    private var entries: UnsafeMutablePointer<Entry?>
    private var entryCapacity: Int
    /// Entries that were ever used; the free ones among them are `nil`.
    private var entryCount = 0
    private var free: [Int32] = []
    private var bytes = 0
    /// Bytes allocated since the heap was grown.
    private var unstretched = 0
    private var clock: UInt32 = 0
    private var hand = 0
    private let byteLimit: Int
    let key: (UInt64, UInt64)
    /// Number of entries.
    private(set) var count = 0

    /// - Parameters:
    ///   - byteLimit: how much memory tokens and attachments may use.
    ///   - key: secret randomness for the hash.
    init(byteLimit: Int, key: (UInt64, UInt64) = (.random(in: .min ... .max), .random(in: .min ... .max))) {
        self.byteLimit = byteLimit
        self.key = key
        slotCount = 256
        unsafe slots = .allocate(capacity: slotCount)
        unsafe slots.initialize(repeating: .free, count: slotCount)
        entryCapacity = 64
        unsafe entries = .allocate(capacity: entryCapacity)
    }

    deinit {
        for index in 0..<entryCount {
            guard let entry = unsafe entries[index] else { continue }
            unsafe Memory.wipe(entry.memory, count: Int(entry.tokenCount) + Int(entry.attachmentCount))
            unsafe entry.memory.deallocate()
        }
        unsafe entries.deinitialize(count: entryCount)
        unsafe entries.deallocate()
        unsafe slots.deallocate()
    }

    /// The entry of a token in a scope, if it exists and has not expired.
    mutating func find(_ token: UnsafeBufferPointer<UInt8>, scope: UInt32, now: Int64) -> Int32? {
        guard let slot = unsafe slot(of: token, scope, hash(token, scope)) else { return nil }
        let index = unsafe slots[slot].index
        guard let expires = unsafe entries[Int(index)]?.expires, expires > now else { return nil }
        clock &+= 1
        unsafe slots[slot].stamp = clock
        return index
    }

    /// The slot of a token in a scope.
    @inline(__always)
    private func slot(of token: UnsafeBufferPointer<UInt8>, _ scope: UInt32, _ hash: UInt64) -> Int? {
        guard let base = token.baseAddress else { return nil }
        var position = Int(truncatingIfNeeded: hash) & (slotCount &- 1)
        while true {
            let slot = unsafe slots + position
            if unsafe slot.pointee.hash == hash, unsafe slot.pointee.scope == scope,
                unsafe Int(slot.pointee.tokenCount) == token.count, let memory = unsafe slot.pointee.memory,
                unsafe memcmp(memory, base, token.count) == 0
            {
                return position
            }
            if unsafe slot.pointee.index < 0 { return nil }
            position = (position &+ 1) & (slotCount &- 1)
        }
    }

    /// The payload of an entry.
    func payload(_ index: Int32) -> Payload? {
        guard index >= 0, Int(index) < entryCount else { return nil }
        return unsafe entries[Int(index)]?.payload
    }

    /// The attachment of an entry; valid until the table is changed.
    func attachment(_ index: Int32) -> UnsafeBufferPointer<UInt8> {
        guard index >= 0, Int(index) < entryCount, let memory = unsafe entries[Int(index)]?.memory,
            let tokenCount = unsafe entries[Int(index)]?.tokenCount,
            let attachmentCount = unsafe entries[Int(index)]?.attachmentCount
        else { return unsafe UnsafeBufferPointer(start: nil, count: 0) }
        return unsafe UnsafeBufferPointer(start: memory + Int(tokenCount), count: Int(attachmentCount))
    }

    /// Inserts a token; replaces an entry for the same token and scope.
    /// - Parameter weight: size of the payload, which counts like the token's own bytes.
    /// - Returns: the entry's index, or −1 where it is too large to be cached.
    @discardableResult
    mutating func insert(
        _ token: UnsafeBufferPointer<UInt8>, scope: UInt32, expires: Int64, now: Int64,
        attachment: UnsafeBufferPointer<UInt8>, payload: Payload, weight: Int = 0
    ) -> Int32 {
        let size = token.count + attachment.count
        guard token.count > 0, weight >= 0, weight <= byteLimit / 8, size <= byteLimit / 8 else { return -1 }
        let hash = unsafe self.hash(token, scope)
        if let known = unsafe slot(of: token, scope, hash) { drop(known) }
        // A full table reuses the memory of evicted entries; only one that still fills needs more heap.
        if bytes + size + weight <= byteLimit { stretchHeap(size + weight) }
        while bytes + size + weight > byteLimit, count > 0 { evictOne() }
        if (count + 1) * 2 > slotCount { grow(now: now) }
        let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
        if let base = token.baseAddress { unsafe memcpy(memory, base, token.count) }
        if let base = attachment.baseAddress { unsafe memcpy(memory + token.count, base, attachment.count) }
        clock &+= 1
        let entry = unsafe Entry(
            memory: memory, tokenCount: Int32(token.count), attachmentCount: Int32(attachment.count),
            expires: expires, weight: weight, payload: payload)
        let index = store(entry)
        bytes += size + weight
        count += 1
        unsafe insertSlot(
            Slot(
                hash: hash, memory: memory, scope: scope, tokenCount: Int32(token.count), index: index, stamp: clock))
        return index
    }

    /// Grows the heap in large steps while the table fills.
    private mutating func stretchHeap(_ size: Int) {
        unstretched += size
        // Two tables fill at a time, and weights are estimates: a third of the step is left for that.
        guard unstretched >= 32 * 1024 else { return }
        unstretched = 0
        Memory.stretchHeap(by: 96 * 1024)
    }

    /// Allocates an index for an entry.
    private mutating func store(_ entry: Entry) -> Int32 {
        if let reused = free.popLast() {
            unsafe entries[Int(reused)] = entry
            return reused
        }
        if entryCount == entryCapacity {
            let larger = UnsafeMutablePointer<Entry?>.allocate(capacity: entryCapacity * 2)
            unsafe larger.moveInitialize(from: entries, count: entryCount)
            unsafe entries.deallocate()
            unsafe entries = larger
            entryCapacity *= 2
        }
        unsafe (entries + entryCount).initialize(to: entry)
        entryCount += 1
        return Int32(entryCount - 1)
    }

    /// The token at an index, if its payload is the expected one; valid until the table is changed.
    func token(_ index: Int32, if isSame: (Payload) -> Bool) -> UnsafeBufferPointer<UInt8>? {
        guard index >= 0, Int(index) < entryCount, let entry = unsafe entries[Int(index)], isSame(entry.payload) else {
            return nil
        }
        return unsafe UnsafeBufferPointer(start: entry.memory, count: Int(entry.tokenCount))
    }

    /// Removes everything.
    mutating func removeAll() {
        for index in 0..<entryCount { wipe(index) }
        unsafe entries.deinitialize(count: entryCount)
        entryCount = 0
        free.removeAll()
        count = 0
        unsafe slots.update(repeating: .free, count: slotCount)
    }

    /// Removes every entry whose payload matches.
    mutating func removeAll(where isVoid: (Payload) -> Bool) { dropAll { isVoid($0.payload) } }

    /// Removes every entry that matches.
    ///
    /// Removal moves later slots to the gap or behind it, so no unvisited slot is skipped.
    private mutating func dropAll(where isVoid: (Entry) -> Bool) {
        var slot = 0
        while slot < slotCount {
            let index = unsafe slots[slot].index
            if index >= 0, let entry = unsafe entries[Int(index)], isVoid(entry) {
                drop(slot)
            } else {
                slot += 1
            }
        }
    }

    private mutating func insertSlot(_ slot: Slot) {
        var position = Int(truncatingIfNeeded: slot.hash) & (slotCount &- 1)
        while unsafe slots[position].index >= 0 { position = (position &+ 1) & (slotCount &- 1) }
        unsafe slots[position] = slot
    }

    /// Frees the entry of a slot and closes the gap in its probe sequence, so that no tombstone ever lengthens a
    /// lookup.
    private mutating func drop(_ slot: Int) {
        let index = unsafe slots[slot].index
        wipe(Int(index))
        free.append(index)
        count -= 1
        var gap = slot
        var next = (slot &+ 1) & (slotCount &- 1)
        while unsafe slots[next].index >= 0 {
            let home = unsafe Int(truncatingIfNeeded: slots[next].hash) & (slotCount &- 1)
            if (next &- home) & (slotCount &- 1) >= (next &- gap) & (slotCount &- 1) {
                unsafe slots[gap] = slots[next]
                gap = next
            }
            next = (next &+ 1) & (slotCount &- 1)
        }
        unsafe slots[gap] = .free
    }

    /// Evicts the least recently used of the next few entries.
    private mutating func evictOne() {
        var victim = -1
        var oldest = UInt32.max
        var seen = 0
        var looked = 0
        while seen < 8, looked < slotCount {
            hand = (hand &+ 1) & (slotCount &- 1)
            looked += 1
            guard unsafe slots[hand].index >= 0 else { continue }
            seen += 1
            let age = unsafe slots[hand].stamp
            if victim < 0 || age < oldest {
                victim = hand
                oldest = age
            }
        }
        if victim >= 0 { drop(victim) }
    }

    private mutating func wipe(_ index: Int) {
        guard let entry = unsafe entries[index] else { return }
        let size = Int(entry.tokenCount) + Int(entry.attachmentCount)
        unsafe Memory.wipe(entry.memory, count: size)
        unsafe entry.memory.deallocate()
        unsafe entries[index] = nil
        bytes -= size + entry.weight
    }

    /// Makes room for more entries: expired ones go first, or a table that is rarely full would keep them all.
    private mutating func grow(now: Int64) {
        dropAll { $0.expires <= now }
        if (count + 1) * 4 > slotCount { rehash(slotCount * 2) }
    }

    private mutating func rehash(_ size: Int) {
        let (old, oldCount) = unsafe (slots, slotCount)
        slotCount = size
        unsafe slots = .allocate(capacity: size)
        unsafe slots.initialize(repeating: .free, count: size)
        for index in 0..<oldCount where unsafe old[index].index >= 0 { unsafe insertSlot(old[index]) }
        unsafe old.deallocate()
    }
}
