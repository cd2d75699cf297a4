internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletResponder

/// Requests as streams of HTTP/2 connections.
extension RequestForwarder {
    /// Sends the request over a connection with capacity, or a new one.
    static func sendOverHTTP2(_ exchange: Handle<Exchange>, to endpoint: EndpointIndex, _ loop: inout LoopState) {
        let found = loop.upstreams.directory.endpoints[Int(endpoint)].connections.first {
            loop.upstreams.hasStreamCapacity($0)
        }
        let connection: Handle<UpstreamConnection>
        if let found {
            connection = found
        } else {
            if loop.upstreams.directory.isCounted(endpoint), !mayConnect(exchange, to: endpoint, .none, &loop) {
                return
            }
            guard let charge = takeDescriptor(for: exchange, &loop) else { return }
            switch loop.upstreams.connect(to: endpoint, .http2, charge, &loop.context) {
            case .success(let upstream):
                connection = upstream
                loop.upstreams.directory.endpoints[Int(endpoint)].connections.append(upstream)
                guard loop.upstreams.openSession(upstream, &loop.context) else {
                    loop.upstreams.close(upstream, &loop.context)
                    return retryOrReject(
                        exchange, .upstreamUnavailable("http2.set_up_failed"), .nothingSent, &loop)
                }
                let group = Int(loop.exchanges[exchange].forwarding.cluster)
                loop.upstreams.arm(
                    upstream, at: loop.now &+ loop.upstreams.directory.clusters[group].upstream.connectTimeout,
                    &loop.context)
                loop.upstreams[upstream].idleTimeout = loop.upstreams.directory.clusters[group].upstream.idleTimeout
            case .failure(let failure): return retryOrReject(exchange, failure, .nothingSent, &loop)
            }
        }
        let upstream = loop.upstreams.all.allocate()
        loop.upstreams[upstream].open(fd: -1, kind: .stream, endpoint: endpoint, connected: false)
        loop.upstreams[upstream].stream.connection = connection
        loop.upstreams[connection].streams?.waiting.append(upstream)
        loop.attach(exchange, to: upstream)
        if loop.upstreams[connection].phase == .frames { startWaitingStreams(connection, &loop) }
    }

    private static func submitStream(
        _ upstream: Handle<UpstreamConnection>, on connection: Handle<UpstreamConnection>,
        _ streams: UpstreamHTTP2State, _ loop: inout LoopState
    ) {
        let exchange = loop.upstreams[upstream].exchange
        let ends = loop.exchanges[exchange].body.isComplete && loop.exchanges[exchange].body.framing.isEmpty
        guard
            let streamID = unsafe streams.session.submitRequest(
                loop.exchanges[exchange].forwarding.head.bytes, isSecure: loop.upstreams[connection].transport.isSecure,
                ends: ends,
                acceptsTrailers: loop.exchanges[exchange].request.acceptsTrailers)
        else {
            return connectFailed(upstream, .upstreamUnavailable("upstream.no_stream"), &loop)
        }
        streams.slots[streamID] = upstream.index
        loop.upstreams[upstream].stream.id = streamID
        loop.upstreams[upstream].stream.hasEndedRequest = ends
        loop.exchanges[exchange].forwarding.head.sent = loop.exchanges[exchange].forwarding.head.count
        loop.upstreams.arm(connection, at: .max, &loop.context)
        loop.upstreams[upstream].expectResponse()
        loop.exchanges[loop.upstreams[upstream].exchange].armResponseTimeout(upstream, &loop.upstreams, &loop.context)
        loop.upstreams.flushStream(upstream, &loop.downstreams, &loop.exchanges, &loop.context)
    }

    /// The connection is established: starts the waiting streams.
    static func startUpstreamFrames(_ connection: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        loop.upstreams[connection].phase = .frames
        // The streams it was opened for may be gone.
        loop.upstreams.arm(connection, at: loop.now &+ loop.upstreams[connection].idleTimeout, &loop.context)
        startWaitingStreams(connection, &loop)
        loop.upstreams.markDirty(connection, &loop.context)
    }

    private static func startWaitingStreams(_ connection: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        guard let streams = loop.upstreams[connection].streams else { return }
        let waiting = streams.waiting
        streams.waiting = []
        for upstream in waiting where loop.upstreams[upstream].isAlive {
            submitStream(upstream, on: connection, streams, &loop)
        }
    }

    /// The connection was never established: its waiting streams are retried elsewhere.
    static func connectionFailed(_ connection: Handle<UpstreamConnection>, _ failure: Failure, _ loop: inout LoopState)
    {
        let waiting = loop.upstreams[connection].streams?.waiting ?? []
        for upstream in waiting { loop.upstreams[upstream].stream.connection = .none }
        loop.upstreams.close(connection, &loop.context)
        for upstream in waiting where loop.upstreams[upstream].isAlive { connectFailed(upstream, failure, &loop) }
    }
}
