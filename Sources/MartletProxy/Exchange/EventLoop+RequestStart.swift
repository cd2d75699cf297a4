internal import MartletCore
internal import MartletHTTP

/// Starts an exchange for a request.
extension EventLoop {
    /// Begins an exchange for a head that could not be parsed; only its rejection is logged.
    mutating func beginUnparsed(_ downstream: Handle<DownstreamConnection>) -> Handle<Exchange> {
        let exchange = allocateExchange(for: downstream)
        exchanges[exchange].request.method = .other
        exchanges[exchange].request.isHTTP10 = false
        exchanges[exchange].request.keepsAlive = false
        exchanges[exchange].request.expectsContinue = false
        exchanges[exchange].body.framing = .none
        return exchange
    }

    /// Begins an exchange for the head that was just parsed from `bytes`.
    @inline(__always)
    mutating func beginExchange(
        _ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> Handle<Exchange> {
        let exchange = allocateExchange(for: downstream)
        exchanges[exchange].request.method = head.method
        exchanges[exchange].request.isHTTP10 = head.isHTTP10
        exchanges[exchange].request.keepsAlive = head.keepsAlive
        exchanges[exchange].request.expectsContinue = head.expectsContinue && !head.isHTTP10
        exchanges[exchange].body.framing = head.framing
        if head.framing.isEmpty {
            exchanges[exchange].body.isComplete = true
        } else {
            expectBody(exchange)
        }
        if exchanges[exchange].isStream {
            let lent = unsafe exchanges.address(of: exchange)
            unsafe lent.pointee.request.detectGRPC(in: &head, bytes)
        }
        if downstreams[downstream].origin.address.isTrusted { unsafe applyProxyFields(exchange, bytes) }
        unsafe exchanges[exchange].record.texts.add(method: bytes[head.methodText], host: bytes[head.authority])
        return exchange
    }

    /// Allocates an exchange for the connection's next request.
    @inline(__always)
    private mutating func allocateExchange(for downstream: Handle<DownstreamConnection>) -> Handle<Exchange> {
        let exchange = exchanges.allocate()
        exchanges[exchange].begin(downstream: downstream, now: now)
        exchanges[exchange].isStream = downstreams[downstream].isStream
        downstreams[downstream].exchange = exchange
        downstreams[downstream].phase = .exchange
        downstreams[downstream].reader.requests &+= 1
        downstreams[downstream].probe.begin()
        downstreams[downstream].timer.deadline = .max
        logs.requestIDs.next()
        unsafe exchanges[exchange].record.texts.begin(requestID: logs.requestIDs.text.bytes)
        return exchange
    }

    private mutating func expectBody(_ exchange: Handle<Exchange>) {
        exchanges[exchange].body.expect()
        armBody(exchange)
    }

    // Not inlined: a proxy's fields are read where the peer is a trusted one.
    @inline(never)
    private mutating func applyProxyFields(_ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe exchanges[exchange].record.applyProxyFields(of: head, bytes, trusting: snapshot.trustedProxies)
    }
}
