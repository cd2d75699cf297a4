internal import MartletHTTP

/// The copy of a request, complete: what its upstream gets, but for what is decided when it is sent.
package struct MirrorRequest: Sendable {
    /// Requests with longer bodies are not copied.
    package static let maximumBodyBytes = 64 * 1024

    /// The upstream that gets the copy.
    package let upstream: String
    /// As it was written for the request's own upstream.
    package let head: [UInt8]
    /// `nil` for the name of the endpoint.
    package let host: [UInt8]?
    /// What the copy does not have.
    package let fields: MirrorFields
    /// `nil` where the request has none.
    package fileprivate(set) var body: [UInt8]?
    /// Whether it may be sent again where the connection was lost.
    package let isRepeatable: Bool

    package init(
        upstream: String, head: [UInt8], host: [UInt8]?, fields: MirrorFields, body: [UInt8]?, isRepeatable: Bool
    ) {
        (self.upstream, self.head, self.host, self.fields) = (upstream, head, host, fields)
        (self.body, self.isRepeatable) = (body, isRepeatable)
    }
}

/// Which fields of a request its copy does not have.
package final class MirrorFields: Sendable {
    /// What frames the original, or belongs to its connection.
    private static let framing = [
        "Connection", "Content-Length", "Expect", "Host", "HTTP2-Settings", "Keep-Alive", "Proxy-Connection", "TE",
        "Trailer", "Transfer-Encoding", "Upgrade",
    ]
    /// With what a client proves who it is, to the gateway or to the upstream.
    private static let credentials = [
        "Authorization", "Cookie", "DPoP", "Proxy-Authorization", "Signature", "Signature-Input", "X-Api-Key",
    ]

    /// The field with which a copy is marked, as a line without its end.
    let mark: String
    /// As letters and digits.
    private let dropped: Set<[UInt8]>

    /// - Parameters:
    ///   - more: further names of credentials.
    ///   - mark: the name of the field that marks a copy.
    package init(dropping more: [String], mark: String) {
        self.mark = "\(mark): 1"
        dropped = Set((Self.framing + Self.credentials + more + [mark]).map { FieldLetters.of($0) })
    }

    /// Whether the copy has no such field, in whatever spelling.
    func drops(_ name: String) -> Bool { dropped.contains(FieldLetters.of(name)) }
}

/// A copy whose body is still arriving; used on the loop of the request only.
package final class MirrorCopy {
    private var request: MirrorRequest
    private let permit: MirrorPermit

    /// - Parameters:
    ///   - request: without its body.
    ///   - expected: the length of the body, where it is known.
    package init(_ request: MirrorRequest, expecting expected: Int?, _ permit: MirrorPermit) {
        self.request = request
        self.permit = permit
        self.request.body = []
        if let expected { self.request.body?.reserveCapacity(min(expected, MirrorRequest.maximumBodyBytes)) }
    }

    /// Adds a piece of the body.
    /// - Returns: whether the body is short enough so far.
    package func append(_ piece: UnsafeBufferPointer<UInt8>) -> Bool {
        guard piece.count <= MirrorRequest.maximumBodyBytes - (request.body?.count ?? 0) else { return false }
        unsafe request.body?.append(contentsOf: piece)
        return true
    }

    /// The copy, now that its body is complete.
    package var complete: MirrorRequest { request }
}

/// Allows the bytes of one copy to be collected, until it is released.
package final class MirrorPermit: Sendable {
    private let onEnd: @Sendable () -> Void

    package init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    deinit { onEnd() }
}

/// What event loops hand copies of requests to; its methods return immediately.
package protocol MirrorReceiving: Sendable {
    /// Asks whether a copy may be collected; `nil` if there are too many, which is counted.
    func admit(for upstream: String) -> MirrorPermit?

    /// Sends a copy, or drops it.
    func send(_ request: MirrorRequest)
}
