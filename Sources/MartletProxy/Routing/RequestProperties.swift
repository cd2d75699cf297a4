internal import MartletConfig
internal import MartletDecisions
internal import MartletHTTP

/// What a request's head says about the exchange.
struct RequestProperties {
    var method = Method.get
    var isHTTP10 = false
    var keepsAlive = true
    var expectsContinue = false
    /// A 100 (Continue) was sent, by the upstream or by the gateway.
    var hasContinued = false
    /// Whether the caller uses gRPC, and gets errors as gRPC status.
    var grpc = GRPCKind.none
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
        grpc = .none
        isConnect = false
        acceptsTrailers = false
        check = []
        navigation = NavigationMark()
    }
}

extension RequestProperties {
    /// Whether it is a call of gRPC over HTTP/2, whose response ends with trailers.
    var isGRPC: Bool {
        get { if case .http2 = grpc { true } else { false } }
        set { grpc = newValue ? .http2 : .none }
    }

    // Heads are lent `inout` here, though they are only read: one that a function borrows is copied for it.

    /// Detects gRPC by its content type.
    mutating func detectGRPC(in head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .contentType {
            grpc = unsafe GRPCKind(contentType: bytes[head.fields[index].value])
        }
    }

    /// Detects gRPC-Web in a request over HTTP/1, which carries no other gRPC.
    @inline(never)
    mutating func detectGRPCWeb(in head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe detectGRPC(in: &head, bytes)
        if isGRPC { grpc = .none }
    }

    /// Detects whether the client accepts trailers (RFC 9110 §10.1.4).
    mutating func detectTrailerSupport(in head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count where head.fields[index].known == .te {
            let value = unsafe bytes[head.fields[index].value]
            acceptsTrailers = unsafe value.elementsEqual("trailers".utf8) { $0 | 0x20 == $1 }
        }
    }
}
