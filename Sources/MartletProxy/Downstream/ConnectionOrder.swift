internal import MartletCore

/// The connections of a loop in the order in which they were accepted, oldest first.
///
/// Ended connections stay in it until they are reached; ``add(_:alive:isAlive:)`` bounds their number.
struct ConnectionOrder {
    /// How many connections are examined for an evictable one.
    static let searchLimit = 512
    /// Ended connections are not removed below this number.
    private static let slack = 1024

    private var queue = FIFO<Handle<DownstreamConnection>>()

    /// Number of entries, ended connections included.
    var count: Int { queue.count }

    /// Adds the newest connection.
    /// - Parameters:
    ///   - alive: how many connections there are.
    ///   - isAlive: whether a connection has not ended; called for all of them when too many entries have.
    @inline(__always)
    mutating func add(
        _ connection: Handle<DownstreamConnection>, alive: Int, isAlive: (Handle<DownstreamConnection>) -> Bool
    ) {
        if queue.count > 2 &* alive &+ Self.slack { removeEnded(isAlive) }
        queue.append(connection)
    }

    @inline(never)
    private mutating func removeEnded(_ isAlive: (Handle<DownstreamConnection>) -> Bool) {
        for _ in 0..<queue.count {
            if let connection = queue.popFirst(), isAlive(connection) { queue.append(connection) }
        }
    }

    /// Removes the oldest connection from the queue.
    mutating func popOldest() -> Handle<DownstreamConnection>? { queue.popFirst() }

    /// Requeues a connection behind all others, so that the next search begins elsewhere.
    mutating func requeue(_ connection: Handle<DownstreamConnection>) { queue.append(connection) }
}
