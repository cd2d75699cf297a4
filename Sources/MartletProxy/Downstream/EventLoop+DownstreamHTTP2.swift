internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletReports
internal import MartletResponder
internal import MartletTLS

/// HTTP/2 downstream: one connection with many streams, which are in `EventLoop+DownstreamStreams`.
extension EventLoop {
    /// Whether the connection may start HTTP/2 with prior knowledge: on its first bytes, in clear text.
    func mayBecomeHTTP2(_ downstream: Handle<DownstreamConnection>) -> Bool {
        downstreams[downstream].reader.requests == 0 && downstreams[downstream].origin.rules.offersHTTP2
            && !downstreams[downstream].origin.rules.isSecure
            && !downstreams[downstream].isStream
    }

    /// Switches the connection to HTTP/2.
    mutating func startHTTP2(_ downstream: Handle<DownstreamConnection>) {
        do throws(HTTP2Error) {
            downstreams[downstream].streams = DownstreamHTTP2State(
                try HTTP2Session.server(snapshot.http2, pool: scratch.http2Memory))
        } catch {
            return
        }
        counters.http2.connections &+= 1
        downstreams[downstream].kind = .http2
        downstreams[downstream].phase = .frames
        downstreams[downstream].reader.isReceivingHead = false
        if isDraining { downstreams[downstream].streams?.session.goAway() }
        markDirty(downstream: downstream)
    }

    /// Handles received frames.
    mutating func receiveFrames(_ bytes: UnsafeBufferPointer<UInt8>, from downstream: Handle<DownstreamConnection>) {
        // The session could not be created.
        guard let streams = downstreams[downstream].streams else { return close(downstream: downstream) }
        let isIntact = unsafe streams.session.receive(bytes, now: now)
        unsafe serveDownstreamEvents(of: downstream, streams, bytes)
        guard downstreams[downstream].isAlive else { return }
        markDirty(downstream: downstream)
        guard !isIntact else { return armFrames(downstream, streams) }
        counters.http2.errors &+= 1
        abandonStreams(of: downstream)
        downstreams[downstream].ending.closesAfterFlush = true
        downstreams[downstream].ending.hasUnreadRequest = true
    }

    mutating func serveDownstreamEvents(
        of downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State,
        _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        while let event = streams.session.nextEvent() {
            switch event {
            case .head(let streamID, let ends): startStream(streamID, of: downstream, streams, ends: ends)
            case .data(let streamID, let start, let count):
                let data = unsafe UnsafeBufferPointer(rebasing: bytes[start..<start &+ count])
                guard let stream = stream(streamID, of: streams) else { continue }
                unsafe streamReceived(stream, data)
            case .trailers(let streamID):
                staging.removeAll()
                streams.session.takeHead(streamID, into: &staging)
                if let stream = stream(streamID, of: streams) { bufferStreamTrailers(stream) }
            case .end(let streamID):
                guard let stream = stream(streamID, of: streams) else { continue }
                downstreams[stream].stream.isEnded = true
                finishStreamInput(stream)
            case .closed(let streamID, _):
                if let stream = stream(streamID, of: streams) { downstreamStreamClosed(stream) }
            case .drained(let streamID):
                if let stream = stream(streamID, of: streams) { streamDrained(stream) }
            case .refused(let streamID, let failure):
                startRejectedStream(streamID, of: downstream, streams, rejected: failure)
            case .interim, .goAway: break
            }
            guard downstreams[downstream].isAlive else { return }
        }
    }

    /// Abandons all streams of a connection that ends.
    mutating func abandonStreams(of downstream: Handle<DownstreamConnection>) {
        guard let streams = downstreams[downstream].streams else { return }
        for index in streams.slots.values {
            if let stream = downstreams.handle(at: index) { abandon(stream) }
        }
    }
}
