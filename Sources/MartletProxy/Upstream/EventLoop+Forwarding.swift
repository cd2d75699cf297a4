internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletRouter

/// Header injection: writes and sends the upstream's head.
extension EventLoop {
    /// Writes the upstream's head and sends the request on its way.
    mutating func forward(_ request: consuming AuthorizedRequest, _ bytes: UnsafeBufferPointer<UInt8>) {
        let exchange = request.exchange
        let group = directory.clusterOfUpstream[snapshot.compiledRoutes[request.route].upstream]
        exchanges[exchange].cluster = group
        if case .hash(let header) = directory.clusters[Int(group)].upstream.balance {
            exchanges[exchange].hash = unsafe hash(of: header, bytes)
        }
        unsafe writeHead(request, bytes)
        sendToEndpoint(exchange, avoiding: -1, reusing: true)
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

    /// The upstream's head: request line, `Host`, forwarded fields, the gateway's fields.
    @inline(__always)
    private mutating func writeHead(_ request: consuming AuthorizedRequest, _ bytes: UnsafeBufferPointer<UInt8>) {
        let exchange = request.exchange
        let route = request.route
        let downstream = exchanges[exchange].downstream
        var out = ByteBuffer()
        swap(&out, &exchanges[exchange].head)
        out.removeAll()
        var rules = rules(exchange, route, consumedCredential: request.consumedCredential)
        let passesRequestLine = passesRequestLine(exchange, route)
        if passesRequestLine {
            rules.insert(.keepsHost)
        } else {
            unsafe writeRequestLine(exchange, route, bytes, into: &out)
        }
        if exchanges[exchange].isStream { unsafe detectTrailerSupport(exchange, bytes) }
        var rewriter = RequestRewriter(rules)
        // " HTTP/1.1" and a line break follow the target.
        if passesRequestLine { rewriter.begin(with: ByteRange(from: head.methodText.start, to: head.target.end &+ 11)) }
        // The loop is here, not in the rewriter: a head that is passed to another function is copied.
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            if unsafe rewriter.forwards(field, bytes, snapshot, route) {
                unsafe rewriter.copy(field.line, bytes, into: &out)
            }
        }
        unsafe rewriter.endFields(bytes, into: &out)
        if rewriter.hasHeldOverride { unsafe writeOverrides(exchange, bytes, into: &out) }
        if rewriter.isHostMissing { unsafe writeHost(exchange, bytes[head.authority], into: &out) }
        if !exchanges[exchange].framing.isNone { unsafe writeFraming(exchange, bytes, into: &out) }
        if exchanges[exchange].tunnel >= 0 { writeUpgrade(exchange, into: &out) }
        if downstreams[downstream].isStream {
            out.append("Via: 2.0 martlet\r\nX-Forwarded-For: ")
        } else {
            out.append("Via: 1.1 martlet\r\nX-Forwarded-For: ")
        }
        if rewriter.extendsChain { unsafe writeChain(bytes, into: &out) }
        unsafe rewriter.writeForwarding(
            downstreams[downstream].address.text, authority: bytes[head.authority], into: &out)
        out.append("\r\nX-Request-Id: ")
        unsafe out.append(unsafe exchanges[exchange].texts.requestID)
        out.append("\r\n")
        request.writeIdentityHeaders(into: &out)
        out.append("\r\n")
        swap(&out, &exchanges[exchange].head)
    }

    /// Per-request header rules.
    @inline(__always)
    private mutating func rules(_ exchange: Int32, _ route: Int, consumedCredential: Bool) -> RequestRewriter.Rules {
        let downstream = exchanges[exchange].downstream
        var rules = snapshot.compiledRoutes[route].rewriting
        if !consumedCredential { rules.remove(.dropsAuthorization) }
        if downstreams[downstream].address.isTrusted { rules.insert(.isTrusted) }
        if downstreams[downstream].rules.isSecure { rules.insert(.isSecure) }
        if exchanges[exchange].expectsContinue { rules.insert(.keepsExpect) }
        exchanges[exchange].route = Int32(truncatingIfNeeded: route)
        exchanges[exchange].fieldRules = rules
        return rules
    }

    /// Whether the request line and `Host` are forwarded unchanged.
    @inline(__always)
    private func passesRequestLine(_ exchange: Int32, _ route: Int) -> Bool {
        let isPathKept = normalizedPath.isEmpty && !snapshot.compiledRoutes[route].stripsPrefix
        guard isPathKept, head.path.start == head.methodText.end &+ 1, !head.isHTTP10,
            case .keep = directory.clusters[Int(exchanges[exchange].cluster)].upstream.host
        else { return false }
        return true
    }

    /// Writes the method overrides that were held back, if no route for the host and path matches methods.
    @inline(never)
    private func writeOverrides(
        _ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        let path = unsafe exchanges[exchange].texts.path
        guard unsafe !snapshot.routes.restrictsMethods(authority: bytes[head.authority].span, path: path.span) else {
            return
        }
        let removals = snapshot.removals[Int(exchanges[exchange].route)]
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            let kind = unsafe snapshot.clientFields.value(of: field, in: bytes.span)
            guard kind == ClientField.methodOverride.rawValue, !field.isNeverForwarded,
                unsafe !removals.contains(field, in: bytes.span)
            else { continue }
            unsafe out.append(bytes[field.line])
        }
    }

    /// Writes the request line and `Host` where they change.
    @inline(never)
    private mutating func writeRequestLine(
        _ exchange: Int32, _ route: Int, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        unsafe out.append(bytes[head.methodText])
        out.append(" ")
        writePath(exchange, route, into: &out)
        if !head.query.isEmpty { unsafe out.append(bytes[head.query]) }
        out.append(" HTTP/1.1\r\n")
        unsafe writeHost(exchange, bytes[head.authority], into: &out)
    }

    /// Writes the addresses in a trusted peer's `X-Forwarded-For`.
    @inline(never)
    private func writeChain(_ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        for index in 0..<head.fields.count where head.fields[index].known == .xForwardedFor {
            unsafe out.append(bytes[head.fields[index].value])
            out.append(", ")
        }
    }

    /// Whether the client accepts trailers (RFC 9110 §10.1.4).
    private mutating func detectTrailerSupport(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .te {
            let value = unsafe bytes[head.fields[index].value]
            exchanges[exchange].acceptsTrailers = unsafe value.elementsEqual("trailers".utf8) { $0 | 0x20 == $1 }
        }
    }

    /// Writes the normalized path, its prefix stripped where the route says so.
    @inline(__always)
    private func writePath(_ exchange: Int32, _ route: Int, into out: inout ByteBuffer) {
        let path = unsafe exchanges[exchange].texts.path
        guard snapshot.compiledRoutes[route].stripsPrefix else { return unsafe out.append(path) }
        let rewrite = unsafe snapshot.routes.routes[route].rewrite(path: path.span)
        if rewrite.becomesRoot { return out.append("/") }
        unsafe out.append(unsafe UnsafeBufferPointer(rebasing: path[rewrite.strippedBytes...]))
    }

    /// Writes `Host`; the endpoint's name is filled in later.
    @inline(never)
    private mutating func writeHost(
        _ exchange: Int32, _ authority: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        let start = out.count
        out.append("Host: ")
        switch directory.clusters[Int(exchanges[exchange].cluster)].upstream.host {
        case .keep: unsafe out.append(authority)
        case .fixed(let name): out.append(text: name)
        case .endpoint: break
        }
        out.append("\r\n")
        exchanges[exchange].hostLine = (start, out.count)
    }

    /// Writes the body framing for the upstream; bodies are always re-encoded.
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
}
