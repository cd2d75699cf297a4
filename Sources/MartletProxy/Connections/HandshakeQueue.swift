internal import MartletCore
internal import MartletProvider

/// What is to be done for connections whose TLS handshake is under way: a bounded amount in each turn of the loop.
///
/// A step costs more than a cached request, and a burst of new connections brings hundreds of them. Networks are served
/// in turn, so that a client waits for few others, whoever they are.
struct HandshakeQueue: ~Copyable {
    /// What is done for a connection.
    enum Work {
        /// Its socket has events, which are kept with it.
        case events
        /// A step that a thread has computed.
        case finished(HandshakeStep)
    }

    /// Steps of one turn: a few tenths of a millisecond.
    static let turn = 8

    /// A connection has at most one event and one step in it, and connections are bounded.
    private var waiting = FairQueue<(connection: EventToken, work: Work)>(.none)

    var isEmpty: Bool { waiting.count == 0 }

    mutating func append(_ work: Work, of connection: EventToken, from network: ClientNetwork?) {
        _ = waiting.append((connection, work), of: network?.workOwner ?? .anybody)
    }

    /// The next of a turn, in which `done` have been done already.
    mutating func next(after done: Int) -> (connection: EventToken, work: Work)? {
        done < HandshakeQueue.turn ? waiting.popFirst() : nil
    }
}
