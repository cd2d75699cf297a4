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
