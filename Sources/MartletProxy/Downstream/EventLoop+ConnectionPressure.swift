internal import MartletCore
internal import MartletHTTP2

/// Closes the oldest unproven connection when the connection limit is reached; below it this costs one append to
/// a queue per connection.
extension EventLoop {
    /// The token of a connection, with the generation of its slot.
    func token(of downstream: Int32) -> EventToken {
        EventToken(.downstream, index: downstream, generation: downstreams[downstream].generation)
    }

    /// Closes one evictable connection (``UnprovenConnection``), if there is one.
    /// - Returns: whether there is capacity now.
    mutating func freeCapacity() -> Bool {
        for _ in 0..<min(acceptOrder.count, ConnectionOrder.searchLimit) {
            guard let connection = acceptOrder.popOldest() else { return false }
            let downstream = connection.index
            guard downstreams.contains(downstream, connection.generation) else { continue }
            if isEvictable(downstream) {
                displace(downstream)
                return true
            }
            acceptOrder.requeue(connection)
        }
        return false
    }

    private func isEvictable(_ downstream: Int32) -> Bool {
        switch downstreams[downstream].phase {
        case .proxyHeader: return isSilent(downstream, timeout: snapshot.loopTimeouts.requestHead)
        case .handshake: return isSilent(downstream, timeout: snapshot.loopTimeouts.handshake)
        case .head:
            let isWaiting = downstreams[downstream].requests == 0 || downstreams[downstream].isReceivingHead
            guard isWaiting, downstreams[downstream].output.isEmpty else { return false }
            return isSilent(downstream, timeout: snapshot.loopTimeouts.requestHead)
        case .frames: return areStreamsEvictable(downstream)
        case .exchange: return isUploadEvictable(downstreams[downstream].exchange)
        case .authenticating, .lingering: return false
        }
    }

    /// The start of the wait follows from its deadline.
    private func isSilent(_ downstream: Int32, timeout: Int64) -> Bool {
        guard downstreams[downstream].deadline != .max else { return false }
        return UnprovenConnection.silent(since: downstreams[downstream].deadline &- timeout).isEvictable(at: now)
    }

    /// An HTTP/2 connection is evictable before its first request, or when all its streams are evictable uploads.
    private func areStreamsEvictable(_ downstream: Int32) -> Bool {
        guard let streams = downstreams[downstream].streams else { return false }
        guard !streams.slots.isEmpty else {
            let since = min(streams.headStartedAt, streams.idleSince)
            return (downstreams[downstream].requests == 0 || streams.headStartedAt != .max)
                && UnprovenConnection.silent(since: min(since, now)).isEvictable(at: now)
        }
        return streams.slots.values.allSatisfy { stream in
            downstreams[stream].phase == .exchange && isUploadEvictable(downstreams[stream].exchange)
        }
    }

    private func isUploadEvictable(_ exchange: Int32) -> Bool {
        guard exchange >= 0, exchanges[exchange].credential.provider < 0, !exchanges[exchange].isRequestComplete,
            !exchanges[exchange].hasResponseStarted, exchanges[exchange].tunnel < 0
        else { return false }
        return UnprovenConnection.uploading(since: exchanges[exchange].started, bytes: exchanges[exchange].bytesIn)
            .isEvictable(at: now)
    }

    private mutating func displace(_ downstream: Int32) {
        counters.displaced &+= 1
        if downstreams[downstream].kind == .http1, downstreams[downstream].exchange >= 0 {
            // The response is sent as far as the socket accepts it: the capacity is needed now.
            let generation = downstreams[downstream].generation
            reject(downstreams[downstream].exchange, .displaced)
            guard downstreams.contains(downstream, generation) else { return }
        }
        abandon(downstream)
    }
}
