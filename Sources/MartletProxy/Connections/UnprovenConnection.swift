internal import MartletCore

/// What a connection is doing, as far as it matters when every place for connections is taken.
///
/// A connection costs whoever opens it next to nothing: an unfinished handshake, half a head or a body that trickles in can
/// hold a place for as long as its timeout. While there are places, the timeouts are enough. When there are none left, one that
/// has not shown any use yet gives its place to the next that comes, or a flood of such connections would keep everybody out.
enum UnprovenConnection {
    /// How long a connection is left alone, in nanoseconds.
    ///
    /// An honest handshake and head take a few round trips, which may be longer; but the oldest goes first, so this is only how
    /// fast a flood has to be before newcomers are turned away: four times `limits.connections` a second.
    static let minimumAge: Int64 = 250_000_000
    /// An upload by nobody who has proved anything is kept as long as it brings this much a second.
    static let minimumRate = 16 * 1024

    /// Nothing whole has come yet: a PROXY header, a handshake or a request head is being waited for.
    case silent(since: Int64)
    /// The body of a request without a proven caller is coming in.
    case uploading(since: Int64, bytes: Int)

    /// Whether the connection is closed so that another one can be served.
    func givesWay(at now: Int64) -> Bool {
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
/// Those that have ended are left in it until they are met; ``add(_:alive:isAlive:)`` keeps their number in bounds.
struct ConnectionOrder {
    /// How many connections are looked at for one that has to give way.
    static let searchLimit = 512
    /// Ended ones are not worth a look below this.
    private static let slack = 1024

    private var queue = FIFO<EventToken>()

    /// How many are in it, ended ones among them.
    var count: Int { queue.count }

    /// Adds the newest connection.
    /// - Parameters:
    ///   - alive: how many connections there are.
    ///   - isAlive: whether a connection has not ended; asked about all of them when too many in the queue have.
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

    /// Takes the oldest connection off the queue.
    mutating func takeOldest() -> EventToken? { queue.popFirst() }

    /// Puts a connection that stays behind all others, so that the next search begins elsewhere.
    mutating func putBack(_ connection: EventToken) { queue.append(connection) }
}
