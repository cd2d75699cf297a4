internal import MartletCore
internal import MartletIO

/// What a router writes again to a new master: what it may have to repeat, where, and what is being repeated.
struct RepeatedWrites {
    var recent = RecentWrites()
    /// The client that takes over, which repeats what this one has acknowledged.
    var successor: RedisClient?
    var changes = MasterChanges()
    var queue = ReplayQueue()
    /// Until it is tried again after a failure.
    var timer: LoopTimer?
    /// The masters whose commands wait for what is written again: a new one does not know what was acknowledged a moment
    /// ago, and would have sessions rejected.
    var holding: Set<RedisURL.Address> = []
    var held: [Held] = []

    /// What was written again a moment ago, and when.
    private var passes: [(time: MonotonicTime, changes: MasterChanges)] = []
    private static let maximumPasses = 8

    /// The recent writes at changed masters are being written again.
    /// - Parameter lateness: how long after it a reply of a former master may be recorded.
    mutating func wroteAgain(_ changes: MasterChanges, at now: MonotonicTime, lateness: Duration) {
        passes.removeAll { now.since($0.time) > lateness }
        if passes.count == Self.maximumPasses { passes = [(now, .all)] } else { passes.append((now, changes)) }
    }

    /// Records an acknowledged write.
    /// - Returns: whether it has to be written again, since it may be of a master that serves its slot no more: it was
    ///   executed before the others were written again, and its reply has come after it.
    mutating func record(
        _ replay: RedisReplay, at now: MonotonicTime, lateness: Duration, of master: (HashSlot) -> RedisURL.Address?
    ) -> Bool {
        recent.add(replay, at: now)
        guard !passes.isEmpty else { return false }
        passes.removeAll { now.since($0.time) > lateness }
        guard let slot = replay.command.slot, let node = master(slot) else { return !passes.isEmpty }
        return passes.contains { $0.changes.contains(slot, of: node) }
    }

    /// A command that is sent when what is written again is written.
    struct Held {
        let ticket: RedisRouting.Ticket
        let address: RedisURL.Address
        let isAsking: Bool
    }

    /// Takes the commands that wait for nothing any more.
    mutating func released() -> [Held] {
        if queue.isEmpty { holding = [] }
        let commands = held
        held = commands.filter { holding.contains($0.address) }
        return commands.filter { !holding.contains($0.address) }
    }
}
