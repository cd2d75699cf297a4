internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions

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

    var isOwn: Bool { self == .own || self == .uncached }
}

/// What the route, the limits and the credential of a request add to the head of its response, in one order.
///
/// A head has its end, the empty line, when it comes here; it is taken off, and comes last again.
extension Exchanges {
    /// Adds to a head what is not its writer's. Few of the heads of upstreams need it.
    /// - Parameter start: where it begins in the pending bytes.
    @inline(never)
    mutating func completeHead(
        of exchange: Handle<Exchange>, from start: Int = 0, _ origin: HeadOrigin, _ context: inout LoopContext
    ) {
        context.scratch.pending[exchange].openHead()
        addFields(to: exchange, from: start, origin, &context)
        context.scratch.pending[exchange].append("\r\n")
    }

    private mutating func addFields(
        to exchange: Handle<Exchange>, from start: Int, _ origin: HeadOrigin, _ context: inout LoopContext
    ) {
        let lent = unsafe all.address(of: exchange)
        if unsafe lent.pointee.response.rules.responseFields != nil {
            unsafe Self.editHead(of: exchange, from: start, by: &lent.pointee.response.rules, origin, &context)
        }
        // Behind those, so that no rule of the route removes `Vary` from it.
        unsafe lent.pointee.response.rules.withCrossOrigin { fields in
            let head = unsafe UnsafeBufferPointer(rebasing: context.scratch.pending[exchange].bytes[start...])
            if !origin.isOwn, unsafe CrossOriginFields.concernsNoField(of: head.span) {
                return fields.add(to: &context.scratch.pending[exchange])
            }
            Self.editHead(of: exchange, from: start, &context) { fields.edit($0, isOwn: origin.isOwn, into: &$1) }
        }
        if origin == .upstreamWithCookies { Self.cutCookies(of: exchange, from: start, &context) }
        if unsafe lent.pointee.record.limits.isAnnounced {
            unsafe lent.pointee.record.limits.append(to: &context.scratch.pending[exchange])
        }
        guard unsafe lent.pointee.credential.setsCookie, let values = cookies.take(exchange) else { return }
        // No cache may give one browser's cookie to another (RFC 9111 §7.3).
        if origin != .uncached { context.scratch.pending[exchange].append("Cache-Control: private\r\n") }
        for value in values {
            context.scratch.pending[exchange].append("Set-Cookie: ")
            context.scratch.pending[exchange].append(text: value)
            context.scratch.pending[exchange].append("\r\n")
        }
    }

    /// Sets and removes the fields of a head that the route sets and removes.
    @inline(never)
    private static func editHead(
        of exchange: Handle<Exchange>, from start: Int, by rules: inout ExchangeRouteRules, _ origin: HeadOrigin,
        _ context: inout LoopContext
    ) {
        guard let fields = rules.responseFields else { return }
        editHead(of: exchange, from: start, &context) { fields.edit($0, isOwn: origin.isOwn, into: &$1) }
    }

    /// Removes the fields of a head with which an upstream would set or delete a cookie of the gateway.
    @inline(never)
    static func cutCookies(of exchange: Handle<Exchange>, from start: Int, _ context: inout LoopContext) {
        guard let browser = context.snapshot.browser else { return }
        Self.editHead(of: exchange, from: start, &context) { head, edited in
            edited = browser.withoutOwnCookies((0..<head.count).map { head[$0] })
        }
    }

    private static func editHead(
        of exchange: Handle<Exchange>, from start: Int, _ context: inout LoopContext,
        _ edit: (_ head: Span<UInt8>, _ edited: inout [UInt8]) -> Void
    ) {
        let head = unsafe UnsafeBufferPointer(rebasing: context.scratch.pending[exchange].bytes[start...])
        var edited: [UInt8] = []
        edited.reserveCapacity(head.count + 256)
        unsafe edit(head.span, &edited)
        context.scratch.pending[exchange].truncate(to: start)
        context.scratch.pending[exchange].append(edited)
    }
}

extension Exchange {
    /// Whether its route, its limits or its credential add anything to the head of its response.
    @inline(__always)
    var addsFields: Bool { response.rules.isSet || record.limits.isAnnounced || credential.setsCookie }
}

extension ByteBuffer {
    /// Takes the empty line off the head with which it ends.
    mutating func openHead() { truncate(to: count &- 2) }
}
