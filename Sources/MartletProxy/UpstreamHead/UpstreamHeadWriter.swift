internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletRouter

/// Header injection: writes the head that an upstream gets.
///
/// First comes what the client sent, as far as ``RequestFieldFilter`` forwards it, then the framing, and the gateway's own
/// fields last.
enum UpstreamHeadWriter {
    /// What the exchange needs of a head that was written.
    struct Written {
        /// The rules that decide about the request's trailers, too.
        let rules: RequestFieldRules
        /// The rewritten path is none that an upstream may get: the head must not be sent.
        var isRejected = false
        /// This gateway has forwarded the request already: the head must not be sent.
        var isLoop = false
    }

    /// Writes a head: request line, `Host`, forwarded fields, the gateway's fields.
    ///
    /// - Parameters:
    ///   - head: lent `inout`, though it is only read: one that a function borrows is copied for it.
    ///   - bytes: those that the head was parsed from.
    ///   - origin: the client's connection; lent like the head.
    ///   - trailers: gets the names that are announced to the upstream.
    ///   - result: gets the head instead of what it holds.
    @inline(__always)
    static func write(
        _ request: borrowing ForwardedRequest, _ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>,
        from origin: inout DownstreamOrigin, _ snapshot: Snapshot, trailers: inout RequestTrailers,
        into result: inout UpstreamHead
    ) -> Written {
        let rules = snapshot.compiledRoutes[request.route].rewriting.applied(
            to: request, isTrusted: origin.address.isTrusted, isSecure: origin.rules.isSecure)
        var written = Written(rules: rules)
        // Taken out of its owner: the offsets of a local stay in registers.
        var out = result.takeMemory()
        out.removeAll()
        var hostLine = (start: 0, end: 0)
        let isRequestLineKept = passesRequestLine(request, &head, snapshot)
        var filter = RequestFieldFilter(isRequestLineKept ? rules.union(.keepsHost) : rules)
        if isRequestLineKept {
            filter.begin(with: requestLine(of: &head))
        } else {
            hostLine = unsafe writeRequestLine(
                &written, &head, bytes, path: request.path, snapshot, request.route, request.upstream, into: &out)
        }
        unsafe writeFields(&filter, request, &head, bytes, snapshot, isRequestLineKept, into: &out)
        if filter.needsReview {
            written.isLoop = unsafe review(filter, request, &head, bytes, snapshot, into: &out)
        }
        if filter.isHostMissing {
            hostLine = unsafe writeHost(
                bytes[head.authority], snapshot, request.route, request.upstream, into: &out)
        }
        if !request.framing.isNone {
            unsafe writeFraming(request.framing, &head, bytes, rules, snapshot, request.route, &trailers, into: &out)
        }
        if unsafe !request.upgrade.isEmpty { unsafe writeUpgrade(request.upgrade, into: &out) }
        if request.isStream {
            out.append("Via: 2.0 martlet-")
        } else {
            out.append("Via: 1.1 martlet-")
        }
        out.append(snapshot.pseudonym)
        out.append("\r\nX-Forwarded-For: ")
        if filter.extendsForwarded {
            unsafe writeForwardedChain(&filter, &head, bytes, from: origin.address.text, snapshot, into: &out)
        } else {
            if filter.extendsChain { unsafe writeChain(&head, bytes, into: &out) }
            unsafe filter.writeForwarding(origin.address.text, authority: bytes[head.authority], into: &out)
        }
        out.append("\r\nX-Request-Id: ")
        unsafe out.append(request.requestID)
        out.append("\r\n")
        unsafe out.append(request.identity)
        out.append("\r\n")
        result.take(&out, hostLine: hostLine)
        return written
    }

    /// Whether the request line and `Host` are forwarded unchanged.
    @inline(__always)
    private static func passesRequestLine(
        _ request: borrowing ForwardedRequest, _ head: inout RequestHead, _ snapshot: Snapshot
    ) -> Bool {
        let isPathKept = request.isPathUnchanged && !snapshot.compiledRoutes[request.route].stripsPrefix
        return isPathKept && head.path.start == head.methodText.end &+ 1 && !head.isHTTP10
            && snapshot.compiledRoutes[request.route].keepsHost
    }

    /// Writes the request line and `Host` where they change.
    @inline(never)
    private static func writeRequestLine(
        _ written: inout Written, _ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>,
        path: UnsafeBufferPointer<UInt8>,
        _ snapshot: Snapshot, _ route: Int, _ upstream: Int, into out: inout ByteBuffer
    ) -> (start: Int, end: Int) {
        unsafe out.append(bytes[head.methodText])
        out.append(" ")
        if let rewrite = snapshot.compiledRoutes[route].rewritesTarget ? snapshot.routes.routes[route].rewrite : nil {
            let target = unsafe rewrite.target(path: path.span, query: bytes[head.query].span)
            written.isRejected = target == nil
            if let target { out.append(target) }
        } else {
            unsafe writePath(path, snapshot, route, into: &out)
            if !head.query.isEmpty { unsafe out.append(bytes[head.query]) }
        }
        out.append(" HTTP/1.1\r\n")
        return unsafe writeHost(bytes[head.authority], snapshot, route, upstream, into: &out)
    }

    /// Writes the normalized path, its prefix stripped where the route says so.
    @inline(__always)
    private static func writePath(
        _ path: UnsafeBufferPointer<UInt8>, _ snapshot: Snapshot, _ route: Int, into out: inout ByteBuffer
    ) {
        guard snapshot.compiledRoutes[route].stripsPrefix else { return unsafe out.append(path) }
        let rewrite = unsafe snapshot.routes.routes[route].rewrite(path: path.span)
        if rewrite.becomesRoot { return out.append("/") }
        unsafe out.append(unsafe UnsafeBufferPointer(rebasing: path[rewrite.strippedBytes...]))
    }

    /// Writes `Host`; the endpoint's name is filled in later (``UpstreamHead/fillInHost(_:scratch:)``), also where the
    /// client has sent none.
    /// - Returns: the offsets of a line that is to be filled in, or zeros.
    @inline(never)
    private static func writeHost(
        _ authority: UnsafeBufferPointer<UInt8>, _ snapshot: Snapshot, _ route: Int, _ upstream: Int,
        into out: inout ByteBuffer
    ) -> (start: Int, end: Int) {
        if let host = snapshot.routes.routes[route].host {
            out.append("Host: ")
            out.append(text: host)
            out.append("\r\n")
            // No endpoint's name replaces it.
            return (0, 0)
        }
        let start = out.count
        var isFilledIn = false
        out.append("Host: ")
        switch snapshot.upstreams[upstream].host {
        case .keep where !authority.isEmpty: unsafe out.append(authority)
        case .fixed(let name): out.append(text: name)
        case .keep, .endpoint: isFilledIn = true
        }
        out.append("\r\n")
        return isFilledIn ? (start, out.count) : (0, 0)
    }

    /// Writes the framing of the body for the upstream; bodies are always re-encoded.
    private static func writeFraming(
        _ framing: BodyFraming, _ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>,
        _ rules: RequestFieldRules, _ snapshot: Snapshot, _ route: Int, _ trailers: inout RequestTrailers,
        into out: inout ByteBuffer
    ) {
        switch framing {
        case .length(let count):
            out.append("Content-Length: ")
            out.append(decimal: count)
            out.append("\r\n")
        case .chunked:
            out.append("Transfer-Encoding: chunked\r\n")
            if head.announcesTrailers { unsafe trailers.announce(&head, bytes, rules, snapshot, route, into: &out) }
        case .none, .untilClose: break
        }
    }

    /// Writes the upgrade offer.
    private static func writeUpgrade(_ name: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        out.append("Connection: Upgrade\r\nUpgrade: ")
        unsafe out.append(name)
        out.append("\r\n")
    }
}
