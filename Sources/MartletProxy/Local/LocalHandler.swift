package import MartletCore
package import MartletIO
package import MartletProvider

/// A request handled in this process: by the admin endpoints, the echo upstream, a simulator.
package struct LocalRequest: Sendable {
    package let method: String
    /// Normalized, without the query.
    package let path: String
    /// The part behind the `?`, as received; empty when there is none.
    package let query: String
    /// In order, names as received.
    package let fields: [(name: String, value: String)]
    /// The body up to ``LocalLimits/bodyBytes``.
    package let body: [UInt8]
    /// The actual length of the body.
    package let bodyBytes: Int
    /// The client's address, without port: that of the peer, or the one that trusted proxies name.
    package let client: String
    /// The client's network, as throttles count it; `nil` for a Unix socket.
    package let network: ClientNetwork?
    /// The client's address: 16 bytes (IPv4 mapped), empty for a Unix socket.
    package let address: [UInt8]
    /// The `X-Request-Id` of the response.
    package let requestID: String
    /// The local address of the connection, on a listener whose requests are all handled in this process.
    package let local: SocketEndpoint?

    package init(
        method: String, path: String, query: String, fields: [(name: String, value: String)], body: [UInt8],
        bodyBytes: Int,
        client: String, network: ClientNetwork? = nil, address: [UInt8] = [], requestID: String,
        local: SocketEndpoint? = nil
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.fields = fields
        self.body = body
        self.bodyBytes = bodyBytes
        self.client = client
        self.network = network
        self.address = address
        self.requestID = requestID
        self.local = local
    }

    /// The value of the first field of that name, in any case.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// The response to a local request.
package struct LocalResponse: Sendable {
    package var status: Int
    package var fields: [(name: String, value: String)]
    package var body: [UInt8]
    /// Why the request was rejected; the gateway writes the response itself and logs the reason.
    package var failure: Failure?
    /// The reason for logs and metrics; `nil` is `ok`.
    package var reason: ErrorCode?

    package init(status: Int, fields: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// An error response.
    package init(refusing failure: Failure) {
        self.init(status: failure.status, fields: [], body: [])
        self.failure = failure
    }

    /// A response with a media type and a text.
    package static func text(_ status: Int, _ mediaType: String, _ text: String) -> LocalResponse {
        LocalResponse(
            status: status, fields: [("Content-Type", mediaType), ("Cache-Control", "no-store")], body: Array(text.utf8)
        )
    }
}

/// Responds to local requests; runs off the loops and may wait, within ``LocalLimits/timeout``.
package typealias LocalHandler = @Sendable (LocalRequest) async -> LocalResponse

/// Handles requests on a listener before anything is routed.
package final class ListenerHandler: Sendable {
    /// The one path that it accepts; `nil` accepts all.
    private let path: [UInt8]?
    let respond: LocalHandler

    /// - Parameter path: `nil` accepts every request.
    package init(path: String? = nil, _ respond: @escaping LocalHandler) {
        self.path = path.map { Array($0.utf8) }
        self.respond = respond
    }

    /// Whether it handles requests for a path, as received.
    func handles(_ received: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let path else { return true }
        return unsafe path.count == received.count && path.elementsEqual(received)
    }
}

/// Limits for requests handled in this process.
package enum LocalLimits {
    /// How much of a body a handler gets; the rest is counted only.
    package static let bodyBytes = 256 * 1024
    /// How many fields the gateway may add to a head, beside those of the client.
    static let ownFields = 256
    /// How long a handler may take.
    package static let timeout = Duration.seconds(10)
}
