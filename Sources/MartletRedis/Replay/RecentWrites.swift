internal import MartletCore

/// What this instance has acknowledged recently, to be written again to a new master: writes since 2 s before the old one
/// was lost, and what it ended in the last 60 s.
///
/// Both are bounded; the oldest are dropped first. A write is kept for less time than the end of a session is marked in
/// the store, so that no write brings back what another instance has ended since.
struct RecentWrites {
    /// A write or an end, and when it was acknowledged.
    struct Entry: Sendable {
        let replay: RedisReplay
        let time: MonotonicTime
    }

    /// How long before the loss of a master a write may have been acknowledged and be unknown to its replicas.
    static let writeWindow = Duration.seconds(2)
    /// The longest failover after which writes are repeated.
    static let writeLifetime = Duration.seconds(30)
    static let endLifetime = Duration.seconds(60)
    private static let maximumWrites = 4096
    private static let maximumWriteBytes = 8 * 1024 * 1024
    private static let maximumEnds = 16_384
    private static let maximumEndsOfAbsent = 1024

    private var writes = FIFO<Entry>()
    private var ends = FIFO<Entry>()
    private var endsOfAbsent = FIFO<Entry>()
    private var writeBytes = 0
    /// The number of writes of each session.
    private var writesOfSession: [UInt64: Int] = [:]
    /// Sessions that have ended since their write.
    private var ended: Set<UInt64> = []

    var count: Int { writes.count + ends.count + endsOfAbsent.count }

    /// All writes and ends, the oldest first of each.
    var entries: [Entry] { writes.elements + ends.elements + endsOfAbsent.elements }

    /// Records an acknowledged write.
    mutating func add(_ replay: RedisReplay, at now: MonotonicTime) {
        drop(at: now)
        switch replay.kind {
        case .write:
            let size = replay.command.size
            while writes.count >= RecentWrites.maximumWrites || writeBytes + size > RecentWrites.maximumWriteBytes {
                guard dropWrite() else { return }
            }
            writeBytes += size
            if let number = replay.number { writesOfSession[number, default: 0] += 1 }
            writes.append(Entry(replay: replay, time: now))
        case .end:
            if ends.count >= RecentWrites.maximumEnds { _ = ends.popFirst() }
            ends.append(Entry(replay: replay, time: now))
            if let number = replay.number { forget([number]) }
        case .endOfAbsent:
            if endsOfAbsent.count >= RecentWrites.maximumEndsOfAbsent { _ = endsOfAbsent.popFirst() }
            endsOfAbsent.append(Entry(replay: replay, time: now))
            if let number = replay.number { forget([number]) }
        }
    }

    /// Sessions have ended, here or at another instance: their writes must not bring them back.
    mutating func forget(_ numbers: [UInt64]) {
        for number in numbers where writesOfSession[number] != nil { ended.insert(number) }
    }

    /// The commands for a new master of some slots: writes first, ends last.
    /// - Parameter lostAt: when the last master was lost.
    mutating func commands(
        at now: MonotonicTime, lostAt: MonotonicTime, where isMoved: (HashSlot) -> Bool
    ) -> (writes: [RedisCommand], ends: [RedisCommand]) {
        drop(at: now)
        var due: (writes: [RedisCommand], ends: [RedisCommand]) = ([], [])
        for entry in writes.elements {
            guard lostAt.since(entry.time) <= RecentWrites.writeWindow else { continue }
            let hasEnded = entry.replay.number.map { ended.contains($0) } ?? false
            if !hasEnded, entry.replay.command.slot.map(isMoved) ?? true { due.writes.append(entry.replay.command) }
        }
        for entry in ends.elements + endsOfAbsent.elements where entry.replay.command.slot.map(isMoved) ?? true {
            due.ends.append(entry.replay.command)
        }
        return due
    }

    private mutating func drop(at now: MonotonicTime) {
        while let first = writes.first, now.since(first.time) > RecentWrites.writeLifetime { dropWrite() }
        while let first = ends.first, now.since(first.time) > RecentWrites.endLifetime { _ = ends.popFirst() }
        while let first = endsOfAbsent.first, now.since(first.time) > RecentWrites.endLifetime {
            _ = endsOfAbsent.popFirst()
        }
    }

    @discardableResult
    private mutating func dropWrite() -> Bool {
        guard let entry = writes.popFirst() else { return false }
        writeBytes -= entry.replay.command.size
        if let number = entry.replay.number, let count = writesOfSession[number] {
            writesOfSession[number] = count > 1 ? count.advanced(by: -1) : nil
            if count <= 1 { ended.remove(number) }
        }
        return true
    }
}

extension RedisCommand {
    fileprivate var size: Int { arguments.reduce(0) { $0 + $1.count } }
}
