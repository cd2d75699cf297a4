internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2

/// A request comes into being.
extension Worker {
    /// Begins an exchange for a head that could not be parsed: there is only the refusal to log.
    mutating func begin(_ client: Int32) -> Int32 {
        let exchange = take(for: client)
        exchanges[exchange].method = .other
        exchanges[exchange].isHTTP10 = false
        exchanges[exchange].keepsAlive = false
        exchanges[exchange].expectsContinue = false
        exchanges[exchange].framing = .none
        return exchange
    }

    /// Begins an exchange for the head that was just parsed from `bytes`.
    @inline(__always)
    mutating func begin(_ client: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Int32 {
        let exchange = take(for: client)
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
        if exchanges[exchange].isStream { unsafe noteGRPC(exchange, bytes) }
        if clients[client].address.isTrusted { unsafe believeProxy(exchange, bytes) }
        unsafe exchanges[exchange].texts.add(method: bytes[head.methodText], host: bytes[head.authority])
        return exchange
    }

    /// Takes a place for a client's next request.
    @inline(__always)
    private mutating func take(for client: Int32) -> Int32 {
        let exchange = exchanges.take()
        exchanges[exchange].begin(client: client, now: now)
        exchanges[exchange].isStream = clients[client].isStream
        clients[client].exchange = exchange
        clients[client].phase = .exchange
        clients[client].requests &+= 1
        clients[client].hasProbed = false
        clients[client].awaitsProbe = false
        clients[client].deadline = .max
        nextRequestID()
        unsafe exchanges[exchange].texts.begin(requestID: idText.bytes)
        return exchange
    }

    private mutating func expectBody(_ exchange: Int32) {
        if case .length(let count) = head.framing { exchanges[exchange].remaining = count }
        exchanges[exchange].decoder = ChunkedDecoder()
        armBody(exchange)
    }

    /// Takes over what a trusted proxy says of the request: its id, and where it comes from.
    private mutating func believeProxy(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe keepRequestID(exchange, bytes)
        let chain = unsafe ForwardedChain.client(of: head, bytes, trusting: snapshot.trustedProxies)
        exchanges[exchange].forwardedClient = chain?.text ?? []
        exchanges[exchange].forwardedNetwork = chain?.octets ?? []
    }

    /// gRPC callers are known by what they send (gRPC over HTTP/2: `application/grpc`, or with a suffix).
    private mutating func noteGRPC(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .contentType {
            exchanges[exchange].isGRPC = unsafe GRPCContentType.matches(bytes[head.fields[index].value])
        }
    }

    /// A trusted proxy's `X-Request-Id`, if it is one plain word.
    private mutating func keepRequestID(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .xRequestID {
            let value = unsafe bytes[head.fields[index].value]
            guard value.count > 0, value.count <= 128 else { continue }
            guard unsafe value.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }) else { continue }
            unsafe exchanges[exchange].texts.begin(requestID: value)
        }
    }

    /// Puts the id of the next request into `idText`: 64 bits that are the loop's own, and a count.
    mutating func nextRequestID() {
        idCount &+= 1
        // The upper half of the count changes once in four thousand million requests.
        if idText.isEmpty || UInt32(truncatingIfNeeded: idCount) == 0 {
            idText.removeAll()
            idText.append(sixteenDigits: idPrefix)
            idText.append(sixteenDigits: idCount)
        } else {
            idText.truncate(to: 24)
            idText.append(eightDigits: UInt32(truncatingIfNeeded: idCount))
        }
    }
}

extension BodyFraming {
    /// Whether nothing follows the head.
    var isEmpty: Bool {
        switch self {
        case .none: true
        case .length(let count): count == 0
        case .chunked, .untilClose: false
        }
    }

    /// Whether the head does not say how much follows.
    var isUnbounded: Bool {
        switch self {
        case .none, .length: false
        case .chunked, .untilClose: true
        }
    }

    var isNone: Bool { if case .none = self { true } else { false } }
    var isChunked: Bool { if case .chunked = self { true } else { false } }
    var isUntilClose: Bool { if case .untilClose = self { true } else { false } }
}

extension UnsafeBufferPointer<UInt8> {
    /// The bytes of a range that a parser found in them.
    subscript(range: ByteRange) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: self[Int(range.start)..<Int(range.end)])
    }
}

extension ByteBuffer {
    /// Appends 16 lower-case hexadecimal digits.
    mutating func append(sixteenDigits value: UInt64) {
        append(eightDigits: UInt32(truncatingIfNeeded: value >> 32))
        append(eightDigits: UInt32(truncatingIfNeeded: value))
    }
}
