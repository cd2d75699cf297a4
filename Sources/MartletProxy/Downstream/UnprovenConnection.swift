internal import MartletCore

/// The state of a connection, as far as it matters when the connection limit is reached.
///
/// A connection costs its client next to nothing: an unfinished handshake, half a head or a slow body can occupy a slot
/// until its timeout. Below the limit the timeouts are enough. At the limit, the oldest connection without a complete
/// request is closed for the next one, or a flood of them would keep all clients out.
enum UnprovenConnection {
    /// How long a connection is protected, in nanoseconds.
    ///
    /// An honest handshake and head take a few round trips, which may be longer; but the oldest goes first, so this
    /// only decides how fast a flood has to be before new connections are rejected: four times `limits.connections` a
    /// second.
    static let minimumAge: Int64 = 250_000_000
    /// An anonymous upload is kept as long as it receives this many bytes a second.
    static let minimumRate = 16 * 1024

    /// Nothing complete was received: waiting for a PROXY header, a handshake or a request head.
    case silent(since: Int64)
    /// The body of a request without a verified caller is being received.
    case uploading(since: Int64, bytes: Int)

    /// Whether the connection may be closed in favor of another one.
    func isEvictable(at now: Int64) -> Bool {
        switch self {
        case .silent(let since): return now &- since >= Self.minimumAge
        case .uploading(let since, let bytes):
            let age = now &- since
            guard age >= Self.minimumAge else { return false }
            return bytes < Int(age / 1_000_000) &* Self.minimumRate / 1000
        }
    }
}

/// The connections of a loop in the order in which they were accepted, oldest first.
///
/// Ended connections stay in it until they are reached; ``add(_:alive:isAlive:)`` bounds their number.
struct ConnectionOrder {
    /// How many connections are examined for an evictable one.
    static let searchLimit = 512
    /// Ended connections are not removed below this number.
    private static let slack = 1024

    private var queue = FIFO<EventToken>()

    /// Number of entries, ended connections included.
    var count: Int { queue.count }

    /// Adds the newest connection.
    /// - Parameters:
    ///   - alive: how many connections there are.
    ///   - isAlive: whether a connection has not ended; called for all of them when too many entries have.
    @inline(__always)
    mutating func add(_ connection: EventToken, alive: Int, isAlive: (EventToken) -> Bool) {
        if queue.count > 2 &* alive &+ Self.slack { removeEnded(isAlive) }
        queue.append(connection)
    }

    @inline(never)
    private mutating func removeEnded(_ isAlive: (EventToken) -> Bool) {
        for _ in 0..<queue.count {
            if let connection = queue.popFirst(), isAlive(connection) { queue.append(connection) }
        }
    }

    /// Removes the oldest connection from the queue.
    mutating func popOldest() -> EventToken? { queue.popFirst() }

    /// Requeues a connection behind all others, so that the next search begins elsewhere.
    mutating func requeue(_ connection: EventToken) { queue.append(connection) }
}
