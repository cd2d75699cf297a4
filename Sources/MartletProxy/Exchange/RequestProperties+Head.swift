internal import MartletConfig
internal import MartletHTTP
internal import MartletHTTP2

extension RequestProperties {
    // Heads are lent `inout` here, though they are only read: one that a function borrows is copied for it.

    /// Detects gRPC by its content type (gRPC over HTTP/2: `application/grpc`, or with a suffix).
    mutating func detectGRPC(in head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .contentType {
            isGRPC = unsafe GRPCContentType.matches(bytes[head.fields[index].value])
        }
    }

    /// Detects whether the client accepts trailers (RFC 9110 §10.1.4).
    mutating func detectTrailerSupport(in head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .te {
            let value = unsafe bytes[head.fields[index].value]
            acceptsTrailers = unsafe value.elementsEqual("trailers".utf8) { $0 | 0x20 == $1 }
        }
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
