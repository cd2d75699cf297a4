internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2

/// Starts an exchange for a request.
extension EventLoop {
    /// Begins an exchange for a head that could not be parsed; only its rejection is logged.
    mutating func beginUnparsed(_ downstream: Int32) -> Int32 {
        let exchange = allocateExchange(for: downstream)
        exchanges[exchange].method = .other
        exchanges[exchange].isHTTP10 = false
        exchanges[exchange].keepsAlive = false
        exchanges[exchange].expectsContinue = false
        exchanges[exchange].framing = .none
        return exchange
    }

    /// Begins an exchange for the head that was just parsed from `bytes`.
    @inline(__always)
    mutating func beginExchange(_ downstream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Int32 {
        let exchange = allocateExchange(for: downstream)
        exchanges[exchange].method = head.method
        exchanges[exchange].isHTTP10 = head.isHTTP10
        exchanges[exchange].keepsAlive = head.keepsAlive
        exchanges[exchange].expectsContinue = head.expectsContinue && !head.isHTTP10
        exchanges[exchange].framing = head.framing
        if head.framing.isEmpty {
            exchanges[exchange].isRequestComplete = true
        } else {
            expectBody(exchange)
        }
        if exchanges[exchange].isStream { unsafe detectGRPC(exchange, bytes) }
        if downstreams[downstream].address.isTrusted { unsafe applyProxyFields(exchange, bytes) }
        unsafe exchanges[exchange].texts.add(method: bytes[head.methodText], host: bytes[head.authority])
        return exchange
    }

    /// Allocates an exchange for the connection's next request.
    @inline(__always)
    private mutating func allocateExchange(for downstream: Int32) -> Int32 {
        let exchange = exchanges.allocate()
        exchanges[exchange].begin(downstream: downstream, now: now)
        exchanges[exchange].isStream = downstreams[downstream].isStream
        downstreams[downstream].exchange = exchange
        downstreams[downstream].phase = .exchange
        downstreams[downstream].requests &+= 1
        downstreams[downstream].hasProbed = false
        downstreams[downstream].isProbePending = false
        downstreams[downstream].deadline = .max
        nextRequestID()
        unsafe exchanges[exchange].texts.begin(requestID: requestIDText.bytes)
        return exchange
    }

    private mutating func expectBody(_ exchange: Int32) {
        if case .length(let count) = head.framing { exchanges[exchange].remaining = count }
        exchanges[exchange].decoder = ChunkedDecoder()
        armBody(exchange)
    }

    /// Applies what a trusted proxy says about the request: its ID, and the client address.
    private mutating func applyProxyFields(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe adoptRequestID(exchange, bytes)
        let chain = unsafe ForwardedChain.client(of: head, bytes, trusting: snapshot.trustedProxies)
        exchanges[exchange].forwardedClient = chain?.text ?? []
        exchanges[exchange].forwardedNetwork = chain?.octets ?? []
    }

    /// Detects gRPC by its content type (gRPC over HTTP/2: `application/grpc`, or with a suffix).
    private mutating func detectGRPC(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .contentType {
            exchanges[exchange].isGRPC = unsafe GRPCContentType.matches(bytes[head.fields[index].value])
        }
    }

    /// Adopts a trusted proxy's `X-Request-Id`, if it is one printable word.
    private mutating func adoptRequestID(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .xRequestID {
            let value = unsafe bytes[head.fields[index].value]
            guard value.count > 0, value.count <= 128 else { continue }
            guard unsafe value.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }) else { continue }
            unsafe exchanges[exchange].texts.begin(requestID: value)
        }
    }

    /// Puts the ID of the next request into `requestIDText`: a random 64-bit prefix of the loop, and a counter.
    mutating func nextRequestID() {
        idCount &+= 1
        // The upper half of the counter changes once in four billion requests.
        if requestIDText.isEmpty || UInt32(truncatingIfNeeded: idCount) == 0 {
            requestIDText.removeAll()
            requestIDText.append(sixteenDigits: idPrefix)
            requestIDText.append(sixteenDigits: idCount)
        } else {
            requestIDText.truncate(to: 24)
            requestIDText.append(eightDigits: UInt32(truncatingIfNeeded: idCount))
        }
    }
}
