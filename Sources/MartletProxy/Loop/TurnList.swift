/// Connections that are handled in turns: what is added during a turn belongs to the next one.
struct TurnList: ~Copyable {
    private var next = FlatList<EventToken>()
    private var turn = FlatList<EventToken>()

    /// Whether the next turn has connections.
    @inline(__always)
    var isEmpty: Bool { next.count == 0 }

    /// Adds a connection to the next turn.
    @inline(__always)
    mutating func append(_ token: EventToken) { next.append(token) }

    /// Starts a turn, after the previous one has ended.
    /// - Returns: the number of its connections, which have the indices from 0.
    mutating func start() -> Int {
        swap(&next, &turn)
        next.removeAll()
        return turn.count
    }

    /// A connection of this turn.
    @inline(__always)
    subscript(index: Int) -> EventToken { turn[index] }
}
