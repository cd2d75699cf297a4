internal import MartletCore
internal import MartletDecisions
internal import MartletProvider

/// Work for connections whose TLS handshake is in progress: the loop does a bounded amount of it in each iteration.
///
/// A handshake step costs more than a cached request, and a burst of new connections brings hundreds of them. Networks
/// are served round-robin, so that a client does not wait behind all connections of another network.
struct HandshakeQueue: ~Copyable {
    enum Work {
        /// The socket has events; they are stored with the connection.
        case events
        /// A step that a thread has finished.
        case finished(HandshakeStep)
    }

    /// Work of one iteration: a few tenths of a millisecond.
    static let batch = 8

    /// A connection has at most one entry for events and one for a step, and connections are bounded.
    private var waiting = FairQueue<(connection: Handle<DownstreamConnection>, work: Work)>(.behind(.connections))

    var isEmpty: Bool { waiting.count == 0 }

    mutating func append(_ work: Work, of connection: Handle<DownstreamConnection>, from network: ClientNetwork?) {
        _ = waiting.append((connection, work), of: network?.workOwner ?? .anonymous)
    }

    /// Removes the next entry of a batch of which `done` were processed.
    mutating func next(after done: Int) -> (connection: Handle<DownstreamConnection>, work: Work)? {
        done < HandshakeQueue.batch ? waiting.popFirst() : nil
    }
}
