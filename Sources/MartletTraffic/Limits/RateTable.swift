internal import Synchronization

/// The buckets of one limit, one for each key, shared by all event loops without a lock.
///
/// A fixed number of slots in groups of eight: a key has two groups where it may be, and each slot is two atomic words,
/// the key's hash and the time of its ``TokenBucket``. A key that is in none of its 16 slots takes over one that is full,
/// in the group that has more of them, or else the one that will be full the soonest. A bucket that is full is the same as one that was never used, so nothing is
/// lost with it. One that is not full hands its time on to its successor, as in the algorithm Space-Saving: the times of
/// the 16 slots only grow, so a key that comes back gets a bucket that is no fuller than the one it lost. Only to its
/// first token is a newcomer always entitled, so that a flood of other keys does not lock it out.
///
/// A key therefore gets more than its limit allows only where
/// * its bucket was taken over, because the 15 others were less full: one token each time;
/// * several loops saw the key for the first time at the same moment: up to one token for each of them;
/// * its bucket was taken over between the two steps of a decision: one token, which another key pays.
// @unchecked Sendable: all words are atomic, and their memory is allocated and freed with the table.
@safe package final class RateTable: @unchecked Sendable {
    private static let groupSize = 8
    private static let wordsOfGroup = 16
    private static let line = 64

    private let groups: UInt64
    /// For each group, eight keys, then eight times; a key of 0 is an empty slot.
    private let words: UnsafeMutablePointer<Atomic<Int64>>
    private let wordCount: Int
    private let filled = Atomic<Int>(0)
    private let takenOver = Atomic<Int>(0)

    /// - Parameter entries: the number of buckets, rounded up to whole groups.
    package init(entries: Int) {
        let groups = max((max(entries, 1) - 1) / Self.groupSize + 1, 2)
        self.groups = UInt64(groups)
        wordCount = groups * Self.wordsOfGroup
        let bytes = wordCount * MemoryLayout<Atomic<Int64>>.stride
        unsafe words = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: Self.line)
            .bindMemory(to: Atomic<Int64>.self, capacity: wordCount)
        for index in 0..<wordCount { unsafe (words + index).initialize(to: Atomic(0)) }
    }

    deinit {
        unsafe words.deinitialize(count: wordCount)
        unsafe UnsafeMutableRawPointer(words).deallocate()
    }

    /// The number of buckets.
    package var entries: Int { wordCount / 2 }

    /// The number of buckets that have a key; none ever loses its own without getting another.
    package var count: Int { filled.load(ordering: .relaxed) }

    /// How many buckets another key has taken over before they were full.
    package var evictions: Int { takenOver.load(ordering: .relaxed) }

    /// Takes a token of a key, if it has one.
    package func take(_ key: RateKey, _ rate: TokenRate, at now: Int64) -> TokenDecision {
        let slot = find(key) ?? claim(key, rate, at: now)
        var bucket = TokenBucket(fullAt: time(slot))
        while true {
            let before = bucket.fullAt
            let decision = bucket.take(rate, at: now)
            guard decision.isAllowed, let changed = exchangeTime(slot, before, bucket.fullAt) else { return decision }
            bucket = TokenBucket(fullAt: changed)
        }
    }

    /// Gives back a token that was taken; nothing if the key's bucket was taken over since.
    package func giveBack(_ key: RateKey, _ rate: TokenRate) {
        guard let slot = find(key) else { return }
        var bucket = TokenBucket(fullAt: time(slot))
        while true {
            let before = bucket.fullAt
            bucket.giveBack(rate)
            guard let changed = exchangeTime(slot, before, bucket.fullAt) else { return }
            bucket = TokenBucket(fullAt: changed)
        }
    }

    // MARK: Slots

    // A slot is the index of its key; its time is eight words further.

    /// The first slot of each of a key's groups.
    @inline(__always)
    private func starts(_ key: RateKey) -> (first: Int, second: Int) {
        (
            Int(truncatingIfNeeded: key.firstGroup(of: groups)) &* Self.wordsOfGroup,
            Int(truncatingIfNeeded: key.secondGroup(of: groups)) &* Self.wordsOfGroup
        )
    }

    @inline(__always)
    private func find(_ key: RateKey) -> Int? {
        let (first, second) = starts(key)
        for slot in first..<(first &+ Self.groupSize) where self.key(slot) == key.word { return slot }
        for slot in second..<(second &+ Self.groupSize) where self.key(slot) == key.word { return slot }
        return nil
    }

    /// Takes over a slot for a key that has none.
    @inline(never)
    private func claim(_ key: RateKey, _ rate: TokenRate, at now: Int64) -> Int {
        while true {
            let starts = starts(key)
            let first = candidate(starts.first, key, at: now)
            let second = candidate(starts.second, key, at: now)
            // The emptier group, so that groups fill evenly; without a full bucket, the one that is full the soonest.
            let chosen =
                if first.fullCount == 0, second.fullCount == 0 {
                    second.time < first.time ? second : first
                } else {
                    second.fullCount > first.fullCount ? second : first
                }
            // Another loop was faster.
            if first.word == key.word { return first.slot }
            if second.word == key.word { return second.slot }
            let isClaimed = unsafe (words + chosen.slot).pointee.compareExchange(
                expected: chosen.word, desired: key.word, ordering: .relaxed
            ).exchanged
            guard isClaimed else { continue }
            if chosen.word == 0 { filled.add(1, ordering: .relaxed) }
            if chosen.fullCount == 0 { takenOver.add(1, ordering: .relaxed) }
            leaveOne(chosen.slot, rate, at: now)
            // The first slot with a key counts: another loop may have claimed one at the same moment.
            return find(key) ?? chosen.slot
        }
    }

    /// A slot that may be taken over.
    private struct Candidate {
        var slot: Int
        var word: Int64
        var time = Int64.max
        /// The full buckets of its group.
        var fullCount = 0
    }

    /// The slot of a group that is full the longest, or will be the soonest; or the one of the key, if it has one.
    private func candidate(_ start: Int, _ key: RateKey, at now: Int64) -> Candidate {
        var best = Candidate(slot: start, word: self.key(start))
        for index in start..<(start &+ Self.groupSize) {
            let word = self.key(index)
            if word == key.word { return Candidate(slot: index, word: word) }
            let time = word == 0 ? -1 : self.time(index)
            if time <= now { best.fullCount &+= 1 }
            if time < best.time { (best.slot, best.word, best.time) = (index, word, time) }
        }
        return best
    }

    /// A newcomer gets one token, whatever its predecessor has used.
    private func leaveOne(_ slot: Int, _ rate: TokenRate, at now: Int64) {
        var bucket = TokenBucket(fullAt: time(slot))
        let before = bucket.fullAt
        bucket.leaveOne(rate, at: now)
        if bucket.fullAt != before { _ = exchangeTime(slot, before, bucket.fullAt) }
    }

    @inline(__always)
    private func key(_ slot: Int) -> Int64 { unsafe (words + slot).pointee.load(ordering: .relaxed) }

    @inline(__always)
    private func time(_ slot: Int) -> Int64 {
        unsafe (words + (slot &+ Self.groupSize)).pointee.load(ordering: .relaxed)
    }

    /// Replaces the time of a slot.
    /// - Returns: the time that it has instead of `expected`, and keeps; `nil` if it was replaced.
    @inline(__always)
    private func exchangeTime(_ slot: Int, _ expected: Int64, _ desired: Int64) -> Int64? {
        let result = unsafe (words + (slot &+ Self.groupSize)).pointee.compareExchange(
            expected: expected, desired: desired, ordering: .relaxed)
        return result.exchanged ? nil : result.original
    }
}
