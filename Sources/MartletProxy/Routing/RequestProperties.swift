internal import MartletConfig
internal import MartletHTTP
internal import MartletHTTP2

/// What a request's head says about the exchange.
struct RequestProperties {
    var method = Method.get
    var isHTTP10 = false
    var keepsAlive = true
    var expectsContinue = false
    /// A 100 (Continue) was sent, by the upstream or by the gateway.
    var hasContinued = false
    /// The caller uses gRPC, and gets errors as gRPC status.
    var isGRPC = false
    /// It is an extended CONNECT (RFC 8441), in whose head the protocol is an `Upgrade`.
    var isConnect = false
    /// The client said that it reads trailers (`TE: trailers`).
    var acceptsTrailers = false
    /// Whether a proxy asks about a request by this one, and how.
    var check: CheckMarks = []
    /// Whether errors are pages, where browsers sign in.
    var navigation = NavigationMark()

    /// The head sets the rest.
    @inline(__always)
    mutating func begin() {
        hasContinued = false
        isGRPC = false
        isConnect = false
        acceptsTrailers = false
        check = []
        navigation = NavigationMark()
    }
}

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
