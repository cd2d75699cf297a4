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
}
