private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletRouter

/// Header injection and the way to an endpoint.
extension Worker {
    /// Idle links kept per endpoint.
    private static let idleLimit = 256

    /// Writes the upstream's head and sends the request on its way.
    mutating func forward(_ request: consuming AuthorizedRequest, _ bytes: UnsafeBufferPointer<UInt8>) {
        let exchange = request.exchange
        let group = upstreams.groupOfUpstream[snapshot.facts[request.route].upstream]
        exchanges[exchange].upstream = group
        if case .hash(let header) = upstreams.groups[Int(group)].upstream.balance {
            exchanges[exchange].hash = unsafe hash(of: header, bytes)
        }
        unsafe writeHead(request, bytes)
        send(exchange, avoiding: -1, reusing: true)
    }

    private func hash(of header: String, _ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for index in 0..<head.fields.count {
            guard unsafe bytes[head.fields[index].name].elementsEqual(header.utf8, by: { $0 | 0x20 == $1 | 0x20 })
            else { continue }
            hash = unsafe bytes[head.fields[index].value].reduce(hash) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        }
        return hash
    }

    /// The upstream's head: request line, `Host`, kept fields, ours.
    @inline(__always)
    private mutating func writeHead(_ request: consuming AuthorizedRequest, _ bytes: UnsafeBufferPointer<UInt8>) {
        let exchange = request.exchange
        let route = request.route
        let client = exchanges[exchange].client
        var out = ByteBuffer()
        swap(&out, &exchanges[exchange].head)
        out.removeAll()
        var rules = rules(exchange, route, consumedCredential: request.consumedCredential)
        let passesOpening = passesOpening(exchange, route)
        if passesOpening { rules.insert(.keepsHost) } else { unsafe writeOpening(exchange, route, bytes, into: &out) }
        if exchanges[exchange].isStream { unsafe noteTrailers(exchange, bytes) }
        var rewriter = RequestRewriter(rules)
        // " HTTP/1.1" and a line end stand behind the target.
        if passesOpening { rewriter.begin(with: ByteRange(from: head.methodText.start, to: head.target.end &+ 11)) }
        // Here, and not in the rewriter: a head that is lent to another function is copied for it.
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            if unsafe rewriter.keeps(field, bytes, snapshot, route) {
                unsafe rewriter.copy(field.line, bytes, into: &out)
            }
        }
        unsafe rewriter.endFields(bytes, into: &out)
        if rewriter.hasHeldOverride { unsafe writeOverrides(exchange, bytes, into: &out) }
        if rewriter.isHostMissing { unsafe writeHost(exchange, bytes[head.authority], into: &out) }
        if !exchanges[exchange].framing.isNone { unsafe writeFraming(exchange, bytes, into: &out) }
        if exchanges[exchange].tunnel >= 0 { writeUpgrade(exchange, into: &out) }
        if clients[client].isStream {
            out.append("Via: 2.0 martlet\r\nX-Forwarded-For: ")
        } else {
            out.append("Via: 1.1 martlet\r\nX-Forwarded-For: ")
        }
        if rewriter.extendsChain { unsafe writeChain(bytes, into: &out) }
        unsafe rewriter.writeForwarding(clients[client].address.text, authority: bytes[head.authority], into: &out)
        out.append("\r\nX-Request-Id: ")
        unsafe out.append(unsafe exchanges[exchange].texts.requestID)
        out.append("\r\n")
        unsafe out.append(unsafe request.grant >= 0 ? grants.attachment(request.grant) : block.bytes)
        out.append("\r\n")
        swap(&out, &exchanges[exchange].head)
    }

    /// What is so about this request that makes a difference to which of its fields pass.
    @inline(__always)
    private mutating func rules(_ exchange: Int32, _ route: Int, consumedCredential: Bool) -> RequestRewriter.Rules {
        let client = exchanges[exchange].client
        var rules = snapshot.facts[route].rewriting
        if !consumedCredential { rules.remove(.dropsAuthorization) }
        if clients[client].address.isTrusted { rules.insert(.isTrusted) }
        if clients[client].rules.isSecure { rules.insert(.isSecure) }
        if exchanges[exchange].expectsContinue { rules.insert(.keepsExpect) }
        exchanges[exchange].route = Int32(truncatingIfNeeded: route)
        exchanges[exchange].fieldRules = rules
        return rules
    }

    /// Whether the upstream gets the request line and `Host` as they came.
    @inline(__always)
    private func passesOpening(_ exchange: Int32, _ route: Int) -> Bool {
        let isPathKept = path.isEmpty && !snapshot.facts[route].stripsPrefix
        guard isPathKept, head.path.start == head.methodText.end &+ 1, !head.isHTTP10,
            case .keep = upstreams.groups[Int(exchanges[exchange].upstream)].upstream.host
        else { return false }
        return true
    }

    /// Writes the method overrides that were held back, where no route for the host and path asks for methods.
    @inline(never)
    private func writeOverrides(
        _ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        let path = unsafe exchanges[exchange].texts.path
        guard unsafe !snapshot.routes.judgesMethods(authority: bytes[head.authority].span, path: path.span) else {
            return
        }
        let removals = snapshot.removals[Int(exchanges[exchange].route)]
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            let kind = unsafe snapshot.clientFields.value(of: field, in: bytes.span)
            guard kind == ClientField.methodOverride.rawValue, !field.neverPasses,
                unsafe !removals.contains(field, in: bytes.span)
            else { continue }
            unsafe out.append(bytes[field.line])
        }
    }

    /// The request line and `Host`, whatever has to change in them.
    @inline(never)
    private mutating func writeOpening(
        _ exchange: Int32, _ route: Int, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        unsafe out.append(bytes[head.methodText])
        out.append(" ")
        writePath(exchange, route, into: &out)
        if !head.query.isEmpty { unsafe out.append(bytes[head.query]) }
        out.append(" HTTP/1.1\r\n")
        unsafe writeHost(exchange, bytes[head.authority], into: &out)
    }

    /// Those whom a trusted peer names in `X-Forwarded-For`.
    @inline(never)
    private func writeChain(_ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        for index in 0..<head.fields.count where head.fields[index].known == .xForwardedFor {
            unsafe out.append(bytes[head.fields[index].value])
            out.append(", ")
        }
    }

    /// Whether the client reads trailers, which a parser has not asked (RFC 9110 §10.1.4).
    private mutating func noteTrailers(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .te {
            let value = unsafe bytes[head.fields[index].value]
            exchanges[exchange].acceptsTrailers = unsafe value.elementsEqual("trailers".utf8) { $0 | 0x20 == $1 }
        }
    }

    /// The normalised path, its prefix stripped where the route says so.
    @inline(__always)
    private func writePath(_ exchange: Int32, _ route: Int, into out: inout ByteBuffer) {
        let path = unsafe exchanges[exchange].texts.path
        guard snapshot.facts[route].stripsPrefix else { return unsafe out.append(path) }
        let rewrite = unsafe snapshot.routes.routes[route].rewrite(path: path.span)
        if rewrite.becomesRoot { return out.append("/") }
        unsafe out.append(unsafe UnsafeBufferPointer(rebasing: path[rewrite.strippedBytes...]))
    }

    /// `Host`; where it is the endpoint's own name it is filled in later.
    @inline(never)
    private mutating func writeHost(
        _ exchange: Int32, _ authority: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        let start = out.count
        out.append("Host: ")
        switch upstreams.groups[Int(exchanges[exchange].upstream)].upstream.host {
        case .keep: unsafe out.append(authority)
        case .fixed(let name): out.append(text: name)
        case .endpoint: break
        }
        out.append("\r\n")
        exchanges[exchange].hostLine = (start, out.count)
    }

    /// How the body is framed towards the upstream; bodies are re-encoded, never copied as they came.
    private mutating func writeFraming(
        _ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        switch exchanges[exchange].framing {
        case .length(let count):
            out.append("Content-Length: ")
            out.append(decimal: count)
            out.append("\r\n")
        case .chunked:
            out.append("Transfer-Encoding: chunked\r\n")
            if head.announcesTrailers { unsafe announceTrailers(exchange, bytes, into: &out) }
        case .none, .untilClose: break
        }
    }

    /// Sends the request to an endpoint: over an idle link, or a new one.
    mutating func send(_ exchange: Int32, avoiding: Int32, reusing: Bool) {
        exchanges[exchange].attempts &+= 1
        guard
            let endpoint = upstreams.choose(
                exchanges[exchange].upstream, hash: exchanges[exchange].hash, avoiding: avoiding, now: now)
        else { return refuse(exchange, .upstreamUnavailable("upstream.no_endpoint")) }
        exchanges[exchange].endpoint = endpoint
        if exchanges[exchange].tunnel >= 0, !carriesUpgrades(exchange) { return refuse(exchange, .upgradeNotCarried) }
        if case .echo = upstreams.endpoints[Int(endpoint)].address { return echo(exchange) }
        nameHost(exchange, endpoint)
        if upstreams.endpoints[Int(endpoint)].wire.isHTTP2 { return multiplex(exchange, to: endpoint) }
        if reusing, let link = upstreams.endpoints[Int(endpoint)].idle.popLast() {
            return attach(exchange, to: link)
        }
        connect(exchange, to: endpoint)
    }

    /// Fills in `Host` where it is the endpoint's own name.
    private mutating func nameHost(_ exchange: Int32, _ endpoint: Int32) {
        guard case .endpoint = upstreams.groups[Int(exchanges[exchange].upstream)].upstream.host else { return }
        let line = exchanges[exchange].hostLine
        staging.removeAll()
        let old = unsafe exchanges[exchange].head.bytes
        unsafe staging.append(unsafe UnsafeBufferPointer(rebasing: old[..<line.start]))
        staging.append("Host: ")
        staging.append(upstreams.endpoints[Int(endpoint)].hostValue)
        staging.append("\r\n")
        let end = staging.count
        unsafe staging.append(unsafe UnsafeBufferPointer(rebasing: old[line.end...]))
        exchanges[exchange].hostLine = (line.start, end)
        exchanges[exchange].head.removeAll()
        unsafe exchanges[exchange].head.append(unsafe staging.bytes)
    }

    private mutating func connect(_ exchange: Int32, to endpoint: Int32) {
        switch connect(to: endpoint, .http1) {
        case .success(let link): attach(exchange, to: link)
        case .failure(let failure): retryOrRefuse(exchange, failure, nothingSent: true)
        }
    }

    /// Begins to connect to an endpoint.
    mutating func connect(to endpoint: Int32, _ kind: Link.Kind) -> Result<Int32, Failure> {
        guard let place = upstreams.place(of: endpoint) else {
            return .failure(.upstreamUnavailable("upstream.name_not_resolved"))
        }
        let (fd, pending): (Int32, Bool)
        do {
            (fd, pending) = try Socket.connect(to: place)
        } catch {
            if !error.isShortage { upstreams.failed(endpoint, refused: true, now: now) }
            return .failure(.upstreamUnavailable(error.isShortage ? "upstream.no_descriptor" : "upstream.refused"))
        }
        let wire = upstreams.endpoints[Int(endpoint)].wire
        let link = links.take()
        // What comes before a request waits for the event that says that the connection is there.
        let isBare = !wire.isSecure && !wire.sendsProxyHeader && kind == .http1
        links[link].open(fd: fd, kind: kind, endpoint: endpoint, connected: !pending && isBare)
        links[link].isSecure = wire.isSecure
        let token = EventToken(.link, index: link, generation: links[link].generation)
        do {
            try poller.add(fd, .connection, token: token.raw)
        } catch {
            closeLink(link)
            return .failure(.upstreamUnavailable("upstream.no_descriptor"))
        }
        return .success(link)
    }

    /// Puts the exchange on a link and sends what there is.
    mutating func attach(_ exchange: Int32, to link: Int32) {
        exchanges[exchange].link = link
        exchanges[exchange].responder = .upstream
        exchanges[exchange].headSent = 0
        links[link].exchange = exchange
        upstreams.began(links[link].endpoint)
        let group = Int(exchanges[exchange].upstream)
        exchanges[exchange].answerPatience = upstreams.groups[group].upstream.answerPatience
        exchanges[exchange].idlePatience = upstreams.groups[group].upstream.idlePatience
        links[link].idlePatience = exchanges[exchange].idlePatience
        if !exchanges[exchange].framing.isEmpty { passHeldBody(of: exchange) }
        if !exchanges[exchange].isRequestComplete { armBody(exchange) }
        if !links[link].isUp {
            arm(link: link, at: now &+ upstreams.groups[group].upstream.connectPatience)
        } else {
            links[link].expectAnswer()
            armAnswer(link)
            flush(link: link)
        }
    }

    /// A link that waits for an answer is patient from the moment the request is complete.
    mutating func armAnswer(_ link: Int32) {
        let exchange = links[link].exchange
        let patience =
            exchanges[exchange].isRequestComplete
            ? exchanges[exchange].answerPatience : exchanges[exchange].idlePatience
        arm(link: link, at: now &+ patience)
    }

    /// Goes to another endpoint where that cannot do anything twice, else answers with the failure: to each of them while
    /// nothing was sent, and once when a repeatable request went unanswered.
    mutating func retryOrRefuse(_ exchange: Int32, _ failure: Failure, nothingSent: Bool) {
        let choices = upstreams.groups[Int(exchanges[exchange].upstream)].members.count
        guard !exchanges[exchange].hasResponseStarted,
            exchanges[exchange].attempts < (nothingSent ? choices : 2),
            nothingSent || exchanges[exchange].isRepeatable
        else { return fail(exchange, failure) }
        if debug.isOn { tellOfRetry(exchange, failure) }
        send(exchange, avoiding: exchanges[exchange].endpoint, reusing: false)
    }

    private func tellOfRetry(_ exchange: Int32, _ failure: Failure) {
        let endpoint = Int(exchanges[exchange].endpoint)
        debug.retry(
            requestID: unsafe String(decoding: exchanges[exchange].texts.requestID, as: UTF8.self),
            upstream: endpoint >= 0 ? String(decoding: upstreams.endpoints[endpoint].text, as: UTF8.self) : "",
            reason: failure.reason)
    }

    /// An idle link goes back to its endpoint, or is closed where enough wait.
    mutating func park(_ link: Int32) {
        let endpoint = Int(links[link].endpoint)
        guard !isDraining, !upstreams.endpoints[endpoint].isRetired,
            !upstreams.endpoints[endpoint].wire.sendsProxyHeader,
            upstreams.endpoints[endpoint].idle.count < Worker.idleLimit
        else { return closeLink(link) }
        links[link].phase = .idle
        upstreams.endpoints[endpoint].idle.append(link)
        arm(link: link, at: now &+ links[link].idlePatience)
    }

    /// Closes the idle links of an endpoint that is not used any more.
    mutating func closeIdle(of endpoint: Int32) {
        let idle = upstreams.endpoints[Int(endpoint)].idle
        upstreams.endpoints[Int(endpoint)].idle = []
        for link in idle { closeLink(link) }
        retireConnections(of: endpoint)
    }

    /// Closes a link's connection and forgets it.
    mutating func closeLink(_ link: Int32) {
        guard links[link].isAlive else { return }
        if links[link].phase == .idle {
            upstreams.endpoints[Int(links[link].endpoint)].idle.removeAll { $0 == link }
        }
        switch links[link].kind {
        case .stream: leaveConnection(link)
        case .http2: forgetConnection(link)
        case .http1: break
        }
        dropPipe(ofLink: link)
        if links[link].fd >= 0 { _ = CLinux.close(links[link].fd) }
        links[link].close()
        links.give(link)
    }

    /// Ends an exchange's use of its link without an answer; the connection cannot be used again.
    mutating func dropLink(of exchange: Int32) {
        exchanges[exchange].task?.cancel()
        exchanges[exchange].task = nil
        let link = exchanges[exchange].link
        guard link >= 0 else { return }
        exchanges[exchange].link = -1
        upstreams.ended(links[link].endpoint)
        closeLink(link)
    }
}
