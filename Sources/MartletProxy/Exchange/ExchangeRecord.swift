internal import MartletConfig
internal import MartletDecisions
internal import MartletHTTP

/// What the access log, the metrics and the limits of its route count of an exchange.
struct ExchangeRecord: ~Copyable {
    /// Texts of the request; its ID is the gateway's or a trusted proxy's.
    var texts = RequestTexts()
    var started: Int64 = 0
    /// The client behind trusted proxies; empty where the peer is the client.
    var forwardedClient: [UInt8] = []
    /// The same address as 16 bytes.
    var forwardedNetwork: [UInt8] = []
    /// Its route's slot in the counters.
    var routeSlot = RouteSlot.noRoute
    /// Index into the counters' reasons; 0 is "ok".
    var reason: Int32 = 0
    var bytesIn = 0
    var bytesOut = 0
    var notes: AccessNotes?
    var limits = ExchangeLimits()

    @inline(__always)
    mutating func begin(now: Int64) {
        started = now
        routeSlot = .noRoute
        reason = 0
        bytesIn = 0
        bytesOut = 0
    }

    @inline(__always)
    mutating func end() {
        limits.end()
        guard !forwardedClient.isEmpty || !forwardedNetwork.isEmpty || notes != nil else { return }
        notes = nil
        forwardedClient = []
        forwardedNetwork = []
    }
}

extension ExchangeRecord {
    /// Applies what a trusted proxy says about the request: its ID, and the client address.
    ///
    /// - Parameters:
    ///   - peer: the proxy's own address, which is the client's where it names no other.
    ///   - proxies: those whose addresses in the chain are skipped.
    mutating func applyProxyFields(
        of head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, from peer: AddressText,
        trusting proxies: [AddressRange]
    ) {
        let chain = unsafe ForwardedChain.client(of: head, bytes, trusting: proxies)
        forwardedClient = chain?.text ?? []
        forwardedNetwork = chain?.octets ?? []
        let client = forwardedClient.isEmpty ? peer : AddressText(forwardedClient)
        if let id = unsafe ExchangeRecord.requestID(of: head, bytes) {
            unsafe texts.begin(requestID: bytes[id], client: client)
        } else {
            texts.set(client: client)
        }
    }

    /// A trusted proxy's `X-Request-Id`, if it is one printable word; the last one counts.
    private static func requestID(of head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) -> ByteRange? {
        var found: ByteRange?
        for index in 0..<head.fields.count where head.fields[index].known == .xRequestID {
            let value = unsafe bytes[head.fields[index].value]
            guard value.count > 0, value.count <= 128 else { continue }
            guard unsafe value.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }) else { continue }
            found = head.fields[index].value
        }
        return found
    }
}
