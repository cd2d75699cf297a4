internal import MartletAuthenticator
internal import MartletCore
internal import MartletHTTP2
internal import MartletReports
internal import MartletResponder

/// Closes the oldest unproven connection when the connection limit is reached; below it this costs one append to
/// a queue per connection.
extension EventLoop {
    /// Closes one evictable connection (``UnprovenConnection``), if there is one.
    /// - Returns: whether there is capacity now.
    mutating func freeCapacity() -> Bool {
        for _ in 0..<min(acceptor.order.count, ConnectionOrder.searchLimit) {
            guard let downstream = acceptor.order.popOldest() else { return false }
            guard downstreams.contains(downstream) else { continue }
            if isEvictable(downstream) {
                displace(downstream)
                return true
            }
            acceptor.order.requeue(downstream)
        }
        return false
    }

    private func isEvictable(_ downstream: Handle<DownstreamConnection>) -> Bool {
        switch downstreams[downstream].phase {
        case .frames: return areStreamsEvictable(downstream)
        case .exchange: return isUploadEvictable(downstreams[downstream].exchange)
        default: break
        }
        let state = UnprovenConnection.Wait(
            phase: downstreams[downstream].phase, deadline: downstreams[downstream].timer.deadline,
            requests: downstreams[downstream].reader.requests,
            isReceivingHead: downstreams[downstream].reader.isReceivingHead,
            hasOutput: !downstreams[downstream].transport.output.isEmpty)
        return UnprovenConnection(waiting: state, timeouts: snapshot.loopTimeouts)?.isEvictable(at: now) ?? false
    }

    /// An HTTP/2 connection is evictable before its first request, or when all its streams are evictable uploads.
    private func areStreamsEvictable(_ downstream: Handle<DownstreamConnection>) -> Bool {
        guard let streams = downstreams[downstream].streams else { return false }
        guard !streams.slots.isEmpty else {
            let connection = UnprovenConnection(
                withoutStreams: downstreams[downstream].reader.requests, headStartedAt: streams.headStartedAt,
                idleSince: streams.idleSince, now: now)
            return connection?.isEvictable(at: now) ?? false
        }
        return streams.slots.values.allSatisfy { index in
            guard let stream = downstreams.handle(at: index) else { return true }
            return downstreams[stream].phase == .exchange && isUploadEvictable(downstreams[stream].exchange)
        }
    }

    private func isUploadEvictable(_ exchange: Handle<Exchange>) -> Bool {
        guard !exchange.isNone else { return false }
        let upload = UnprovenConnection.Upload(
            isAnonymous: exchanges[exchange].credential.provider < 0,
            isRequestComplete: exchanges[exchange].body.isComplete,
            hasResponseStarted: exchanges[exchange].response.hasStarted,
            isUpgrade: !exchanges[exchange].tunnel.isNone,
            started: exchanges[exchange].record.started, bytes: exchanges[exchange].record.bytesIn)
        return UnprovenConnection(upload)?.isEvictable(at: now) ?? false
    }

    private mutating func displace(_ downstream: Handle<DownstreamConnection>) {
        counters.connections.displaced &+= 1
        if downstreams[downstream].kind == .http1, !downstreams[downstream].exchange.isNone {
            // The response is sent as far as the socket accepts it: the capacity is needed now.
            reject(downstreams[downstream].exchange, .displaced)
            guard downstreams[downstream].isAlive else { return }
        }
        abandon(downstream)
    }
}
