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
extension Exchanges {
    /// Ends the head that was written for a client.
    /// - Parameter start: where it begins in the pending bytes.
    @inline(__always)
    mutating func endHead(
        of exchange: Handle<Exchange>, from start: Int, _ origin: HeadOrigin, _ context: inout LoopContext
    ) {
        if origin.isOwn || self[exchange].response.rules.isSet || context.snapshot.editsHeads {
            completeHead(of: exchange, from: start, origin, &context)
        }
        context.scratch.pending[exchange].append("\r\n")
    }

    @inline(never)
    private mutating func completeHead(
        of exchange: Handle<Exchange>, from start: Int, _ origin: HeadOrigin, _ context: inout LoopContext
    ) {
        if let rules = self[exchange].response.rules.responseFields {
            Self.editHead(of: exchange, from: start, &context) { rules.edit($0.span, isOwn: origin.isOwn, into: &$1) }
        }
        // Behind those, so that no rule of the route removes `Vary` from it.
        if let fields = self[exchange].response.rules.crossOrigin {
            Self.editHead(of: exchange, from: start, &context) { fields.edit($0.span, isOwn: origin.isOwn, into: &$1) }
        }
        if origin == .upstreamWithCookies { Self.cutCookies(of: exchange, from: start, &context) }
        if self[exchange].record.limits.isAnnounced {
            let lent = unsafe all.address(of: exchange)
            unsafe lent.pointee.record.limits.append(to: &context.scratch.pending[exchange])
        }
        guard self[exchange].credential.setsCookie, let values = cookies.take(exchange) else { return }
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
    static func cutCookies(of exchange: Handle<Exchange>, from start: Int, _ context: inout LoopContext) {
        guard let browser = context.snapshot.browser else { return }
        Self.editHead(of: exchange, from: start, &context) { $1 = browser.withoutOwnCookies($0) }
    }

    private static func editHead(
        of exchange: Handle<Exchange>, from start: Int, _ context: inout LoopContext,
        _ edit: (_ head: [UInt8], _ edited: inout [UInt8]) -> Void
    ) {
        let head = unsafe Array(context.scratch.pending[exchange].bytes[start...])
        var edited: [UInt8] = []
        edited.reserveCapacity(head.count + 256)
        edit(head, &edited)
        context.scratch.pending[exchange].truncate(to: start)
        context.scratch.pending[exchange].append(edited)
    }
}
