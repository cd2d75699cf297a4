internal import MartletAuthenticator
internal import MartletCore

/// Whose response a head is of, which decides what may change in it.
enum HeadOrigin {
    /// An upstream's, or the echo's in its place.
    case upstream
    /// An upstream's with cookies, which may be none of the gateway.
    case upstreamWithCookies
    /// The gateway's, whose fields stay.
    case own
    /// The same, and no cache keeps it.
    case uncached

    @inline(__always)
    var isOwn: Bool { self == .own || self == .uncached }
}

/// What the route, the limits and the credential of a request add to the head of its response, in one order.
///
/// Whoever writes a head leaves it open: it has no empty line before it comes here.
extension LoopState {
    /// Ends the head that was written for a client.
    /// - Parameter start: where it begins in the pending bytes.
    @inline(__always)
    mutating func endHead(of exchange: Handle<Exchange>, from start: Int, _ origin: HeadOrigin) {
        if origin.isOwn || exchanges[exchange].response.rules.isSet || context.snapshot.editsHeads {
            completeHead(of: exchange, from: start, origin)
        }
        context.scratch.pending[exchange].append("\r\n")
    }

    @inline(never)
    private mutating func completeHead(of exchange: Handle<Exchange>, from start: Int, _ origin: HeadOrigin) {
        if let rules = exchanges[exchange].response.rules.responseFields {
            editHead(of: exchange, from: start) { rules.edit($0.span, isOwn: origin.isOwn, into: &$1) }
        }
        // Behind those, so that no rule of the route removes `Vary` from it.
        if let fields = exchanges[exchange].response.rules.crossOrigin {
            editHead(of: exchange, from: start) { fields.edit($0.span, isOwn: origin.isOwn, into: &$1) }
        }
        if origin == .upstreamWithCookies { cutCookies(of: exchange, from: start) }
        if exchanges[exchange].record.limits.isAnnounced {
            let lent = unsafe exchanges.all.address(of: exchange)
            unsafe lent.pointee.record.limits.append(to: &context.scratch.pending[exchange])
        }
        guard exchanges[exchange].credential.setsCookie, let values = exchanges.cookies.take(exchange) else { return }
        // No cache may give one browser's cookie to another (RFC 9111 §7.3).
        if origin != .uncached { context.scratch.pending[exchange].append("Cache-Control: private\r\n") }
        for value in values {
            context.scratch.pending[exchange].append("Set-Cookie: ")
            context.scratch.pending[exchange].append(text: value)
            context.scratch.pending[exchange].append("\r\n")
        }
    }

    /// Removes the fields of a head with which an upstream would set or delete a cookie of the gateway.
    @inline(never)
    mutating func cutCookies(of exchange: Handle<Exchange>, from start: Int) {
        guard let browser = context.snapshot.browser else { return }
        editHead(of: exchange, from: start) { $1 = browser.withoutOwnCookies($0) }
    }

    private mutating func editHead(
        of exchange: Handle<Exchange>, from start: Int, _ edit: (_ head: [UInt8], _ edited: inout [UInt8]) -> Void
    ) {
        let head = unsafe Array(context.scratch.pending[exchange].bytes[start...])
        var edited: [UInt8] = []
        edited.reserveCapacity(head.count + 256)
        edit(head, &edited)
        context.scratch.pending[exchange].truncate(to: start)
        context.scratch.pending[exchange].append(edited)
    }
}
