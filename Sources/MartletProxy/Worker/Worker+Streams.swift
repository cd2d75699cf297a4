internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletTLS

/// HTTP/2 with clients: one connection, many streams, each of them an element that carries one request.
extension Worker {
    /// Above this much waiting output of all streams, those that have most of it are filled no further.
    private static let connectionHighWater = 1024 * 1024
    /// The same for one stream.
    static let streamHighWater = 64 * 1024
    static let streamLowWater = 16 * 1024
    /// Bytes of frames that are made ready for one write.
    static let pumpBytes = 64 * 1024

    // MARK: The connection

    /// Whether the bytes that come may be HTTP/2's: the first ones, where it is spoken in clear text.
    func mayBecomeHTTP2(_ client: Int32) -> Bool {
        clients[client].requests == 0 && clients[client].rules.offersHTTP2 && !clients[client].rules.isSecure
            && !clients[client].isStream
    }

    /// The connection speaks HTTP/2 from here.
    mutating func beginHTTP2(_ client: Int32) {
        do throws(HTTP2Error) {
            clients[client].streams = ClientStreams(try HTTP2Session.server(snapshot.http2))
        } catch {
            return
        }
        counters.http2Connections &+= 1
        clients[client].kind = .http2
        clients[client].phase = .frames
        clients[client].isReceivingHead = false
        if isDraining { clients[client].streams?.session.goAway() }
        markDirty(client: client)
    }

    /// Frames have come.
    mutating func useFrames(_ bytes: UnsafeBufferPointer<UInt8>, from client: Int32) {
        // The session could not be made: there is nobody to speak to.
        guard let streams = clients[client].streams else { return close(client: client) }
        let generation = clients[client].generation
        let goesOn = unsafe streams.session.receive(bytes, now: now)
        unsafe serveEvents(of: client, streams, bytes)
        guard clients.holds(client, generation) else { return }
        markDirty(client: client)
        guard !goesOn else { return armFrames(client, streams) }
        counters.http2Refusals &+= 1
        abandonStreams(of: client)
        clients[client].closesAfterFlush = true
        clients[client].hasUnreadRequest = true
    }

    private mutating func serveEvents(
        of client: Int32, _ streams: ClientStreams, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        let generation = clients[client].generation
        while let event = streams.session.nextEvent() {
            switch event {
            case .head(let stream, let ends): beginStream(stream, of: client, streams, ends: ends)
            case .data(let stream, let start, let count):
                let data = unsafe UnsafeBufferPointer(rebasing: bytes[start..<start &+ count])
                guard let place = streams.places[stream] else { continue }
                unsafe streamReceived(place, data)
            case .trailers(let stream):
                staging.removeAll()
                streams.session.takeHead(stream, into: &staging)
                if let place = streams.places[stream] { keepStreamTrailers(place) }
            case .end(let stream):
                guard let place = streams.places[stream] else { continue }
                clients[place].isStreamEnded = true
                useStreamEnd(place)
            case .closed(let stream, _):
                if let place = streams.places[stream] { streamClosed(place) }
            case .drained(let stream):
                if let place = streams.places[stream] { streamDrained(place) }
            case .refused(let stream, let failure):
                beginStream(stream, of: client, streams, refused: failure)
            case .interim, .goAway: break
            }
            guard clients.holds(client, generation) else { return }
        }
    }

    // MARK: Streams

    /// A place for a stream that begins.
    private mutating func openStream(_ stream: Int32, of client: Int32, _ streams: ClientStreams) -> Int32 {
        let place = clients.take()
        // The session has counted the head; as text it is a little longer.
        clients[place].open(
            fd: -1, kind: .stream, rules: clients[client].rules, address: clients[client].address,
            maximumHeadBytes: snapshot.limits.headerBytes &+ 1024)
        if clients[client].handler != nil { clients[place].handler = clients[client].handler }
        clients[place].connection = client
        clients[place].stream = stream
        streams.places[stream] = place
        streams.idleSince = .max
        clients[client].requests &+= 1
        counters.http2Streams &+= 1
        return place
    }

    private mutating func beginStream(_ stream: Int32, of client: Int32, _ streams: ClientStreams, ends: Bool) {
        let place = openStream(stream, of: client, streams)
        clients[place].isStreamEnded = ends
        streams.session.takeHead(stream, into: &clients[place].input)
        // A request that is known to be broken goes nowhere.
        if let code = streams.session.endOfBroken(stream) { return refuseBroken(place, code) }
        let generation = clients[place].generation
        useInput(place)
        guard clients.holds(place, generation), clients[place].exchange < 0, !clients[place].isAnswered else { return }
        // A head that the session let through and the parser does not find whole.
        refuse(begin(place), .head(.badRequestLine))
    }

    /// A stream that was over before its head was looked at: it is reset already, the log says why.
    private mutating func refuseBroken(_ place: Int32, _ code: HTTP2Code) {
        let exchange = begin(place)
        unsafe exchanges[exchange].texts.set(unreadable: clients[place].input.bytes)
        guard code == .protocolError else { return streamClosed(place) }
        refuse(exchange, .head(.badContentLength))
    }

    private mutating func beginStream(
        _ stream: Int32, of client: Int32, _ streams: ClientStreams, refused failure: HeadFailure
    ) {
        let place = openStream(stream, of: client, streams)
        clients[place].isStreamEnded = true
        let exchange = begin(place)
        exchanges[exchange].isGRPC = streams.session.isRefusedCall(stream)
        refuse(exchange, .head(failure))
    }

    /// Bytes of a stream's request body have come.
    private mutating func streamReceived(_ place: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        // Answered already: what still comes is nobody's.
        guard !clients[place].isAnswered else { return creditStream(place, bytes.count) }
        guard clients[place].input.isEmpty, !clients[place].isPaused, clients[place].phase == .exchange else {
            return unsafe clients[place].input.append(bytes)
        }
        unsafe received(place, bytes)
    }

    /// All frames of a request have come: once they are used, the request is whole.
    mutating func useStreamEnd(_ place: Int32) {
        let exchange = clients[place].exchange
        guard clients[place].isStreamEnded, clients[place].input.isEmpty, clients[place].phase == .exchange,
            exchange >= 0, !exchanges[exchange].isRequestComplete
        else { return }
        if isTunnel(exchange) {
            clients[place].hasEnded = true
            return clientEnded(tunnelOf: exchange)
        }
        guard exchanges[exchange].framing.isChunked || exchanges[exchange].remaining == 0 else { return abandon(place) }
        endStreamed(exchange)
    }

    private mutating func keepStreamTrailers(_ place: Int32) {
        let exchange = clients[place].exchange
        guard exchange >= 0, !exchanges[exchange].isRequestComplete else { return }
        exchanges[exchange].streamTrailers.removeAll()
        unsafe exchanges[exchange].streamTrailers.append(staging.bytes)
        staging.removeAll()
    }

    /// Lets the client send as much again as was used.
    mutating func creditStream(_ place: Int32, _ count: Int) {
        let connection = clients[place].connection
        clients[connection].streams?.session.consume(clients[place].stream, count)
        markDirty(client: connection)
    }

    /// The stream is over, both ways or at once.
    private mutating func streamClosed(_ place: Int32) {
        let exchange = clients[place].exchange
        if exchange >= 0 {
            counters.http2Resets &+= 1
            dropLink(of: exchange)
            if exchanges[exchange].status == 0 { exchanges[exchange].status = 499 }
            exchanges[exchange].reason = counters.reason("request.client_left")
            finish(exchange)
        }
        close(client: place)
    }

    /// The client took what had waited: who fills the stream goes on.
    private mutating func streamDrained(_ place: Int32) {
        clients[place].takenAt = now
        let exchange = clients[place].exchange
        guard exchange >= 0, exchanges[exchange].link >= 0 else { return }
        let link = exchanges[exchange].link
        guard links[link].isPaused else { return }
        links[link].isPaused = false
        markReady(link: link)
    }

    /// Takes a stream out of its connection's books.
    mutating func forgetStream(_ place: Int32) {
        let connection = clients[place].connection
        guard let streams = clients[connection].streams else { return }
        streams.places[clients[place].stream] = nil
        armFrames(connection, streams)
    }

    /// Ends a stream at once.
    mutating func resetStream(_ place: Int32, _ code: HTTP2Code) {
        let connection = clients[place].connection
        clients[connection].streams?.session.reset(clients[place].stream, code)
        markDirty(client: connection)
    }

    /// The connection is gone: so are its streams.
    mutating func abandonStreams(of client: Int32) {
        guard let streams = clients[client].streams else { return }
        for place in Array(streams.places.values) { abandon(place) }
    }

    // MARK: Answers

    /// What stands in `staging` is a whole head; a stream is told it in frames, a connection with what follows.
    mutating func sendHead(_ exchange: Int32, ends: Bool) {
        guard exchanges[exchange].isStream else { return }
        let place = exchanges[exchange].client
        let connection = clients[place].connection
        unsafe clients[connection].streams?.session.submitHead(clients[place].stream, staging.bytes, ends: ends)
        if ends { exchanges[exchange].hasEndedStream = true }
        staging.removeAll()
        markDirty(client: connection)
    }

    /// What stands in `staging` is a whole answer.
    mutating func sendWhole(_ exchange: Int32) {
        guard exchanges[exchange].isStream else { return sendStaging(exchange) }
        var whole = ByteBuffer()
        swap(&whole, &staging)
        let bytes = unsafe whole.bytes
        let head = unsafe endOfHead(bytes)
        unsafe staging.append(UnsafeBufferPointer(rebasing: bytes[..<head]))
        sendHead(exchange, ends: head == bytes.count)
        if head < bytes.count {
            unsafe write(UnsafeBufferPointer(rebasing: bytes[head...]), to: exchanges[exchange].client)
        }
        whole.removeAll()
        swap(&whole, &staging)
        endStream(exchange)
    }

    /// Where the body begins in an answer that was written here.
    private func endOfHead(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        var index = 3
        while index < bytes.count {
            if unsafe bytes[index] == 0x0A, unsafe bytes[index &- 1] == 0x0D, unsafe bytes[index &- 2] == 0x0A {
                return index &+ 1
            }
            index &+= 1
        }
        return bytes.count
    }

    /// Tells a waiting client to send the body (RFC 9110 §15.2.1).
    mutating func sendContinue(_ exchange: Int32) {
        staging.removeAll()
        staging.append("HTTP/1.1 100 Continue\r\n\r\n")
        sendHead(exchange, ends: false)
        sendStaging(exchange)
    }

    /// Sends body bytes on a stream.
    mutating func send(_ bytes: UnsafeBufferPointer<UInt8>, on place: Int32) {
        let connection = clients[place].connection
        guard let session = clients[connection].streams?.session else { return }
        unsafe session.send(clients[place].stream, bytes)
        markDirty(client: connection)
        let exchange = clients[place].exchange
        if exchange < 0 || exchanges[exchange].isRequestComplete { armWrite(place) }
        guard exchange >= 0, exchanges[exchange].link >= 0 else { return }
        let unsent = session.unsent(clients[place].stream)
        if unsent > Worker.streamHighWater
            || unsent > Worker.streamLowWater && session.unsentTotal > Worker.connectionHighWater
        {
            links[exchanges[exchange].link].isPaused = true
        }
    }

    /// The answer on a stream is complete, trailers and all.
    mutating func endStream(_ exchange: Int32) {
        guard exchanges[exchange].isStream, !exchanges[exchange].hasEndedStream else { return }
        exchanges[exchange].hasEndedStream = true
        let place = exchanges[exchange].client
        let connection = clients[place].connection
        unsafe clients[connection].streams?.session.end(
            clients[place].stream, trailers: exchanges[exchange].answerTrailers.bytes)
        markDirty(client: connection)
    }

    /// The answer has been handed over: the exchange ends, and its stream as soon as the client has taken everything.
    mutating func completeStream(_ exchange: Int32) {
        let place = exchanges[exchange].client
        let connection = clients[place].connection
        let isWhole = exchanges[exchange].isRequestComplete
        finish(exchange)
        clients[place].isAnswered = true
        clients[place].phase = .head
        markDirty(client: connection)
        if !isWhole, clients[connection].streams?.session.resetAtEnd(clients[place].stream) != true {
            clients[connection].streams?.session.reset(clients[place].stream, .noError)
            return close(client: place)
        }
        arm(client: place, at: now &+ snapshot.patience.bodyIdle)
    }

    // MARK: Writing frames

    /// Has the connection's frames written at the end of the turn.
    mutating func markDirty(client: Int32) {
        guard !clients[client].isDirty else { return }
        clients[client].isDirty = true
        dirty.append(EventToken(.client, index: client, generation: clients[client].generation))
    }

    /// Writes the frames of every connection that has some.
    mutating func pumpAll() {
        while !dirty.isEmpty {
            let turn = dirty
            dirty.removeAll(keepingCapacity: true)
            for token in turn {
                switch token.kind {
                case .client where clients.holds(token.index, token.generation): pump(client: token.index)
                case .link where links.holds(token.index, token.generation): pump(link: token.index)
                default: break
                }
            }
        }
    }

    private mutating func pump(client: Int32) {
        clients[client].isDirty = false
        guard let streams = clients[client].streams else { return }
        let generation = clients[client].generation
        while clients[client].output.count < Worker.pumpBytes, streams.session.hasOutput {
            if clients[client].rules.isSecure {
                plain.removeAll()
                streams.session.takeOutput(into: &plain, upTo: Worker.pumpBytes)
                guard !plain.isEmpty, seal(client) else { break }
            } else {
                let before = clients[client].output.count
                streams.session.takeOutput(into: &clients[client].output, upTo: Worker.pumpBytes)
                if clients[client].output.count == before { break }
            }
            flush(client: client)
            guard clients.holds(client, generation) else { return }
        }
        unsafe serveEvents(of: client, streams, UnsafeBufferPointer(start: nil, count: 0))
        if counters.tunnelsOpen > 0 { settleTunnels(streams) }
        guard clients.holds(client, generation), clients[client].output.isEmpty else { return }
        if clients[client].closesAfterFlush { return endConnection(client) }
        endIfDone(client, streams)
    }

    /// Frames have gone out that the end of a tunnel may have waited for.
    private mutating func settleTunnels(_ streams: ClientStreams) {
        for place in Array(streams.places.values) where clients[place].isAlive && isTunnel(clients[place].exchange) {
            settleTunnel(clients[place].exchange)
        }
    }

    /// Encrypts what stands in `plain`.
    private mutating func seal(_ client: Int32) -> Bool {
        do {
            try unsafe clients[client].engine?.send(plain.bytes)
        } catch {
            abandon(client)
            return false
        }
        clients[client].engine?.takeCiphertext(into: &clients[client].output)
        return true
    }

    /// The kernel took frames that had waited.
    mutating func framesWritten(_ client: Int32) {
        guard clients[client].output.isEmpty else { return armWrite(client) }
        clients[client].output.release()
        if clients[client].closesAfterFlush { return endConnection(client) }
        guard let streams = clients[client].streams else { return }
        armFrames(client, streams)
        if streams.session.hasOutput { markDirty(client: client) }
        if clients[client].mayHaveMore { markReady(client: client) }
    }

    /// A connection that has said goodbye, and has nothing under way, ends.
    private mutating func endIfDone(_ client: Int32, _ streams: ClientStreams) {
        guard streams.places.isEmpty, streams.session.isFinished else { return }
        endConnection(client)
    }

    // MARK: Deadlines

    /// How long the connection itself may wait; its streams have deadlines of their own.
    private mutating func armFrames(_ client: Int32, _ streams: ClientStreams) {
        if !streams.session.isReceivingHead {
            streams.headSince = .max
        } else if streams.headSince == .max {
            streams.headSince = now
        }
        if !clients[client].output.isEmpty {
            // What is to be taken has its deadline, which other frames of a client that takes nothing do not move.
            if clients[client].deadline == .max { armWrite(client) }
            return
        }
        if streams.headSince != .max {
            arm(client: client, at: streams.headSince &+ snapshot.patience.requestHead)
        } else if streams.places.isEmpty {
            // One that was told to go elsewhere is kept for what is on its way.
            if streams.session.isGoingAway { return arm(client: client, at: now &+ Worker.drainIdle) }
            if streams.idleSince == .max { streams.idleSince = now }
            awaitRequest(client, since: streams.idleSince)
        } else {
            arm(client: client, at: .max)
        }
    }

    /// The connection's deadline has passed.
    mutating func framesTimedOut(_ client: Int32) {
        guard let streams = clients[client].streams, clients[client].output.isEmpty else { return abandon(client) }
        if streams.headSince != .max {
            streams.session.terminate(.enhanceYourCalm)
            abandonStreams(of: client)
        } else {
            streams.session.goAway()
            streams.session.goAway()
        }
        clients[client].closesAfterFlush = true
        markDirty(client: client)
    }

    /// Whether a client has taken all that was written for it.
    func hasTakenEverything(_ client: Int32) -> Bool {
        guard clients[client].isStream else { return clients[client].output.isEmpty && !hasAnswerInPipe(client) }
        return clients[clients[client].connection].streams?.session.unsent(clients[client].stream) ?? 0 == 0
    }

    /// A client takes no bytes of its answer.
    ///
    /// On a stream, some may have gone since the deadline was set.
    mutating func takenTooSlowly(_ client: Int32) {
        guard clients[client].isStream, hasTakenMore(client) else { return abandon(client) }
        arm(client: client, at: now &+ snapshot.patience.bodyIdle)
    }

    /// Whether bytes have gone out on a stream since this was asked last.
    mutating func hasTakenMore(_ place: Int32) -> Bool {
        let sent = clients[clients[place].connection].streams?.session.sent(clients[place].stream) ?? 0
        defer { clients[place].sentAtCheck = sent }
        return sent > clients[place].sentAtCheck
    }
}
