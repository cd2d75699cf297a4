internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletTLS

/// HTTP/2 with upstreams: few connections, many streams, each of them an element that carries one request.
extension Worker {
    /// Streams that may wait for a connection that is not there yet.
    private static let waitingLimit = 100
    /// How often a request is sent again that an upstream did not look at.
    private static let refusalLimit = 4

    // MARK: Finding a connection

    /// Sends the request over a connection that can carry more, or a new one.
    mutating func multiplex(_ exchange: Int32, to endpoint: Int32) {
        let found = upstreams.endpoints[Int(endpoint)].connections.first { canCarryMore($0) }
        let connection: Int32
        if let found {
            connection = found
        } else {
            switch connect(to: endpoint, .http2) {
            case .success(let link):
                connection = link
                upstreams.endpoints[Int(endpoint)].connections.append(link)
                guard openSession(link) else {
                    closeLink(link)
                    return retryOrRefuse(exchange, .upstreamUnavailable("http2.set_up_failed"), nothingSent: true)
                }
                let group = Int(exchanges[exchange].upstream)
                arm(link: link, at: now &+ upstreams.groups[group].upstream.connectPatience)
                links[link].idlePatience = upstreams.groups[group].upstream.idlePatience
            case .failure(let failure): return retryOrRefuse(exchange, failure, nothingSent: true)
            }
        }
        let link = links.take()
        links[link].open(fd: -1, kind: .stream, endpoint: endpoint, connected: false)
        links[link].connection = connection
        links[connection].streams?.waiting.append(link)
        attach(exchange, to: link)
        if links[connection].phase == .frames { beginWaiting(connection) }
    }

    private func canCarryMore(_ connection: Int32) -> Bool {
        guard let streams = links[connection].streams else { return false }
        guard links[connection].phase == .frames else { return streams.waiting.count < Worker.waitingLimit }
        return streams.session.canOpenStream
    }

    private mutating func openSession(_ connection: Int32) -> Bool {
        do throws(HTTP2Error) {
            var options = HTTP2Options()
            options.headerBytes = 64 * 1024
            options.headerFields = 256
            options.initialWindow = 256 * 1024
            links[connection].streams = LinkStreams(try HTTP2Session.client(options))
            return true
        } catch {
            return false
        }
    }

    /// The connection is there: what waited for it begins.
    mutating func beginFrames(_ connection: Int32) {
        links[connection].phase = .frames
        // Whoever it was made for may have gone.
        arm(link: connection, at: now &+ links[connection].idlePatience)
        beginWaiting(connection)
        markDirty(link: connection)
    }

    private mutating func beginWaiting(_ connection: Int32) {
        guard let streams = links[connection].streams else { return }
        let waiting = streams.waiting
        streams.waiting = []
        for link in waiting where links[link].isAlive { beginStream(link, on: connection, streams) }
    }

    private mutating func beginStream(_ link: Int32, on connection: Int32, _ streams: LinkStreams) {
        let exchange = links[link].exchange
        let ends = exchanges[exchange].isRequestComplete && exchanges[exchange].framing.isEmpty
        guard
            let stream = unsafe streams.session.submitRequest(
                exchanges[exchange].head.bytes, isSecure: links[connection].isSecure, ends: ends,
                acceptsTrailers: exchanges[exchange].acceptsTrailers)
        else {
            return connectFailed(link, .upstreamUnavailable("upstream.no_stream"))
        }
        streams.places[stream] = link
        links[link].stream = stream
        links[link].hasEndedRequest = ends
        exchanges[exchange].headSent = exchanges[exchange].head.count
        arm(link: connection, at: .max)
        links[link].expectAnswer()
        armAnswer(link)
        flushStream(link)
    }

    // MARK: Sending

    /// Hands what there is of a request's body to its stream.
    mutating func flushStream(_ link: Int32) {
        let exchange = links[link].exchange
        guard exchange >= 0, links[link].isUp, let session = session(of: link), !links[link].isStreamClosed
        else { return }
        if !links[link].output.isEmpty {
            unsafe session.send(links[link].stream, links[link].output.bytes)
            links[link].output.release()
        }
        if exchanges[exchange].isRequestComplete, !links[link].hasEndedRequest {
            links[link].hasEndedRequest = true
            unsafe session.end(links[link].stream, trailers: exchanges[exchange].requestTrailers.bytes)
        }
        markDirty(link: links[link].connection)
        if !exchanges[exchange].isRequestComplete { armAnswer(link) }
        if session.unsent(links[link].stream) > Worker.streamHighWater {
            clients[exchanges[exchange].client].isPaused = true
        }
    }

    /// The framing of a stream's connection; `nil` once that has broken.
    func session(of stream: Int32) -> HTTP2Session? {
        let connection = links[stream].connection
        return connection < 0 ? nil : links[connection].streams?.session
    }

    /// Has the connection's frames written at the end of the turn.
    mutating func markDirty(link: Int32) {
        guard !links[link].isDirty else { return }
        links[link].isDirty = true
        dirty.append(EventToken(.link, index: link, generation: links[link].generation))
    }

    /// Writes the frames that a connection has ready.
    mutating func pump(link: Int32) {
        links[link].isDirty = false
        guard let streams = links[link].streams, links[link].phase == .frames else { return }
        let generation = links[link].generation
        while links[link].wire.count < Worker.pumpBytes, streams.session.hasOutput {
            let before = links[link].wire.count
            if links[link].isSecure {
                plain.removeAll()
                streams.session.takeOutput(into: &plain, upTo: Worker.pumpBytes)
                do {
                    try unsafe links[link].engine?.send(plain.bytes)
                } catch {
                    return connectionBroke(link, "upstream.reset")
                }
                links[link].engine?.takeCiphertext(into: &links[link].wire)
            } else {
                streams.session.takeOutput(into: &links[link].wire, upTo: Worker.pumpBytes)
            }
            if links[link].wire.count == before { break }
            sendWire(link)
        }
        unsafe serveEvents(of: link, streams, UnsafeBufferPointer(start: nil, count: 0))
        guard links.holds(link, generation) else { return }
        if streams.session.isFinished, streams.places.isEmpty { closeLink(link) }
    }

    /// The kernel takes bytes again.
    mutating func writeLinkFrames(_ link: Int32) {
        sendWire(link)
        if links[link].wire.isEmpty, links[link].streams?.session.hasOutput == true { markDirty(link: link) }
    }

    // MARK: Answers

    /// Frames have come.
    mutating func useAnswerFrames(_ link: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let streams = links[link].streams else { return }
        let generation = links[link].generation
        streams.heardAt = now
        let goesOn = unsafe streams.session.receive(bytes, now: now)
        unsafe serveEvents(of: link, streams, bytes)
        guard links.holds(link, generation) else { return }
        markDirty(link: link)
        if !goesOn { connectionBroke(link, "upstream.broke_http2") }
    }

    private mutating func serveEvents(
        of link: Int32, _ streams: LinkStreams, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        let generation = links[link].generation
        while let event = streams.session.nextEvent() {
            switch event {
            case .head(let stream, let ends): headCame(stream, streams, ends: ends)
            case .interim(let stream): headCame(stream, streams, ends: false)
            case .data(let stream, let start, let count):
                guard let place = streams.places[stream] else { continue }
                unsafe answerCame(place, UnsafeBufferPointer(rebasing: bytes[start..<start &+ count]))
            case .trailers(let stream):
                staging.removeAll()
                streams.session.takeHead(stream, into: &staging)
                if let place = streams.places[stream] { keepAnswerTrailers(place) }
            case .end(let stream):
                guard let place = streams.places[stream] else { continue }
                links[place].isStreamEnded = true
                useAnswerEnd(place)
            case .closed(let stream, let code):
                if let place = streams.places[stream] { streamClosed(place, code) }
            case .drained(let stream):
                guard let place = streams.places[stream], links[place].exchange >= 0 else { continue }
                resumeClient(of: links[place].exchange)
            case .refused(let stream, let failure):
                guard let place = streams.places[stream], links[place].exchange >= 0 else { continue }
                answerInvalid(place, failure.upstream.code)
            case .goAway: upstreams.endpoints[Int(links[link].endpoint)].connections.removeAll { $0 == link }
            }
            guard links.holds(link, generation) else { return }
        }
    }

    private mutating func headCame(_ stream: Int32, _ streams: LinkStreams, ends: Bool) {
        guard let place = streams.places[stream] else { return }
        // What came with the head shows that it is no answer: as long as nothing has gone to the client, it can be told.
        if streams.session.endOfBroken(stream) == .protocolError { return streamClosed(place, .protocolError) }
        links[place].endsWithHead = ends
        links[place].isStreamEnded = ends
        streams.session.takeHead(stream, into: &links[place].input)
        useStreamInput(place)
    }

    /// Bytes of an answer's body have come.
    private mutating func answerCame(_ place: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard links[place].input.isEmpty, !links[place].isPaused, links[place].phase == .body else {
            return unsafe links[place].input.append(bytes)
        }
        let generation = links[place].generation
        let used = unsafe useAnswer(bytes, from: place)
        guard links.holds(place, generation) else { return }
        credit(place, used)
        if used < bytes.count { unsafe links[place].input.append(UnsafeBufferPointer(rebasing: bytes[used...])) }
    }

    /// Uses what had to wait on a stream.
    private mutating func useStreamInput(_ place: Int32) {
        guard !links[place].input.isEmpty else { return }
        let generation = links[place].generation
        let isBody = links[place].phase == .body
        var waiting = ByteBuffer()
        swap(&waiting, &links[place].input)
        links[place].hasAnswered = true
        let used = unsafe useAnswer(waiting.bytes, from: place)
        guard links.holds(place, generation) else { return }
        waiting.consume(used)
        if isBody { credit(place, used) }
        unsafe links[place].input.append(waiting.bytes)
    }

    /// A stream whose client was slow goes on.
    mutating func continueAnswer(_ place: Int32) {
        guard !links[place].isPaused else { return }
        let generation = links[place].generation
        useStreamInput(place)
        if links.holds(place, generation) { useAnswerEnd(place) }
    }

    /// All frames of an answer have come: once they are used, the answer is complete.
    private mutating func useAnswerEnd(_ place: Int32) {
        guard links[place].isStreamEnded, links[place].input.isEmpty, links[place].phase == .body else { return }
        if case .length = links[place].framing, links[place].remaining > 0 {
            return linkBroke(place, "upstream.truncated")
        }
        staging.removeAll()
        endAnswer(place)
    }

    private mutating func keepAnswerTrailers(_ place: Int32) {
        let exchange = links[place].exchange
        guard exchange >= 0 else { return }
        var lines = ByteBuffer()
        swap(&lines, &staging)
        unsafe keepAnswerTrailers(lines.bytes, exchange)
        lines.removeAll()
        swap(&lines, &staging)
    }

    /// Lets the upstream send as much again as was used.
    private mutating func credit(_ place: Int32, _ count: Int) {
        // What came before its connection broke is still used.
        guard let session = session(of: place) else { return }
        session.consume(links[place].stream, count)
        markDirty(link: links[place].connection)
    }

    // MARK: Ends

    /// The upstream has closed a stream, or both sides are done with it.
    private mutating func streamClosed(_ place: Int32, _ code: HTTP2Code) {
        links[place].isStreamClosed = true
        guard links[place].exchange >= 0 else { return closeLink(place) }
        // All of the answer is here and waits for a slow client.
        if links[place].isStreamEnded { return }
        let exchange = links[place].exchange
        // What came was no answer, or our request none to the upstream: another try changes neither.
        if code == .protocolError, !exchanges[exchange].hasResponseStarted {
            return answerInvalid(place, "upstream.stream_malformed")
        }
        guard code == .refusedStream, !exchanges[exchange].hasResponseStarted else {
            return linkBroke(place, "upstream.stream_reset")
        }
        // RFC 9113 §8.7: the request was not looked at. Its body is gone as far as it was sent.
        dropLink(of: exchange)
        guard exchanges[exchange].attempts < Worker.refusalLimit, exchanges[exchange].bodyBytes == 0 else {
            return fail(exchange, .upstreamUnavailable("upstream.stream_refused"))
        }
        send(exchange, avoiding: -1, reusing: true)
    }

    /// Takes a stream out of its connection's books; the peer is told when it need not go on.
    mutating func leaveConnection(_ link: Int32) {
        let connection = links[link].connection
        guard connection >= 0, let streams = links[connection].streams else { return }
        streams.waiting.removeAll { $0 == link }
        guard links[link].stream != 0 else { return }
        streams.places[links[link].stream] = nil
        let hasSentRequest = links[link].hasEndedRequest && streams.session.unsent(links[link].stream) == 0
        let isOver = links[link].isStreamClosed || links[link].isStreamEnded && hasSentRequest
        if !isOver { streams.session.reset(links[link].stream, .cancel) }
        markDirty(link: connection)
        if streams.places.isEmpty, streams.waiting.isEmpty {
            arm(link: connection, at: now &+ links[connection].idlePatience)
        }
    }

    /// Nobody needs the connection any more, or it has failed.
    mutating func forgetConnection(_ link: Int32) {
        upstreams.endpoints[Int(links[link].endpoint)].connections.removeAll { $0 == link }
    }

    /// A connection that was never there: what waited for it goes elsewhere.
    mutating func connectionFailed(_ connection: Int32, _ failure: Failure) {
        let waiting = links[connection].streams?.waiting ?? []
        for link in waiting { links[link].connection = -1 }
        closeLink(connection)
        for link in waiting where links[link].isAlive { connectFailed(link, failure) }
    }

    /// A connection broke with streams on it.
    mutating func connectionBroke(_ connection: Int32, _ reason: ErrorCode) {
        guard links[connection].phase == .frames else {
            return connectionFailed(connection, .upstreamUnavailable(reason))
        }
        let streams = links[connection].streams
        let places = streams.map { Array($0.places.values) } ?? []
        for link in places {
            links[link].connection = -1
            links[link].isStreamClosed = true
        }
        closeLink(connection)
        for link in places where links[link].isAlive && links[link].exchange >= 0 && !links[link].isStreamEnded {
            linkBroke(link, reason)
        }
    }

    /// Whether a stream's request is still on its way, and has come further since this was asked last.
    mutating func isTakingRequest(_ link: Int32) -> Bool {
        guard links[link].kind == .stream, let session = session(of: link) else { return false }
        let sent = session.sent(links[link].stream)
        defer { links[link].sentAtCheck = sent }
        return sent > links[link].sentAtCheck && unsent(link) > 0
    }

    /// A stream got no answer in time: where the whole connection has been silent as long, it may be dead without
    /// anybody knowing, and other requests go over a new one.
    mutating func doubtConnection(of link: Int32, silentFor patience: Int64) {
        let connection = links[link].connection
        guard connection >= 0, let streams = links[connection].streams, links[connection].phase == .frames,
            now &- streams.heardAt >= patience
        else { return }
        forgetConnection(connection)
    }

    /// A connection without streams was not needed for a while.
    mutating func framesIdle(_ link: Int32) {
        guard let streams = links[link].streams, streams.places.isEmpty, streams.waiting.isEmpty else { return }
        upstreams.endpoints[Int(links[link].endpoint)].connections.removeAll { $0 == link }
        streams.session.terminate(.noError)
        pump(link: link)
        closeLink(link)
    }

    /// An endpoint is not used any more: its connections end with their streams.
    mutating func retireConnections(of endpoint: Int32) {
        let connections = upstreams.endpoints[Int(endpoint)].connections
        upstreams.endpoints[Int(endpoint)].connections = []
        for connection in connections {
            guard let streams = links[connection].streams, streams.places.isEmpty, streams.waiting.isEmpty else {
                continue
            }
            closeLink(connection)
        }
    }
}
