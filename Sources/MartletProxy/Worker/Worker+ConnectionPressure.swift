internal import MartletCore

/// What happens when every place for connections is taken: the oldest one that has not proved any use is closed.
///
/// Nothing here is asked while there are places, but for one append to a queue per connection.
extension Worker {
    /// The token that tells a client from those that had its place before.
    func token(of client: Int32) -> EventToken {
        EventToken(.client, index: client, generation: clients[client].generation)
    }

    /// Closes one connection that gives way (``UnprovenConnection``), if there is one.
    /// - Returns: whether there is a place now.
    mutating func makeRoom() -> Bool {
        for _ in 0..<min(order.count, ConnectionOrder.searchLimit) {
            guard let connection = order.takeOldest() else { return false }
            let client = connection.index
            guard clients.holds(client, connection.generation) else { continue }
            if givesWay(client) {
                displace(client)
                return true
            }
            order.putBack(connection)
        }
        return false
    }

    private func givesWay(_ client: Int32) -> Bool {
        switch clients[client].phase {
        case .proxyHeader: return isSilent(client, patience: snapshot.patience.requestHead)
        case .handshake: return isSilent(client, patience: snapshot.patience.handshake)
        case .head:
            let isWaiting = clients[client].requests == 0 || clients[client].isReceivingHead
            guard isWaiting, clients[client].output.isEmpty else { return false }
            return isSilent(client, patience: snapshot.patience.requestHead)
        case .frames: return framesGiveWay(client)
        case .exchange: return uploadGivesWay(clients[client].exchange)
        case .authenticating, .lingering: return false
        }
    }

    /// The deadline of a wait tells when the wait began.
    private func isSilent(_ client: Int32, patience: Int64) -> Bool {
        guard clients[client].deadline != .max else { return false }
        return UnprovenConnection.silent(since: clients[client].deadline &- patience).givesWay(at: now)
    }

    /// A connection of HTTP/2 gives way before its first request, or when all it carries are uploads that do.
    private func framesGiveWay(_ client: Int32) -> Bool {
        guard let streams = clients[client].streams else { return false }
        guard !streams.places.isEmpty else {
            let since = min(streams.headSince, streams.idleSince)
            return (clients[client].requests == 0 || streams.headSince != .max)
                && UnprovenConnection.silent(since: min(since, now)).givesWay(at: now)
        }
        return streams.places.values.allSatisfy { stream in
            clients[stream].phase == .exchange && uploadGivesWay(clients[stream].exchange)
        }
    }

    private func uploadGivesWay(_ exchange: Int32) -> Bool {
        guard exchange >= 0, exchanges[exchange].provider < 0, !exchanges[exchange].isRequestComplete,
            !exchanges[exchange].hasResponseStarted, exchanges[exchange].tunnel < 0
        else { return false }
        return UnprovenConnection.uploading(since: exchanges[exchange].started, bytes: exchanges[exchange].bytesIn)
            .givesWay(at: now)
    }

    private mutating func displace(_ client: Int32) {
        counters.displaced &+= 1
        if clients[client].kind == .http1, clients[client].exchange >= 0 {
            // The refusal goes out as far as the socket takes it: the place is needed now.
            let generation = clients[client].generation
            refuse(clients[client].exchange, .displaced)
            guard clients.holds(client, generation) else { return }
        }
        abandon(client)
    }
}
