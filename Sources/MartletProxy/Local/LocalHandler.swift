package import MartletCore
package import MartletIO
package import MartletProvider

/// A request that is answered in this process: by the admin endpoints, the echo upstream, a simulator.
package struct LocalRequest: Sendable {
    package let method: String
    /// Normalised, without the query.
    package let path: String
    /// Behind the `?`, as received; empty when there is none.
    package let query: String
    /// In order, names as received.
    package let fields: [(name: String, value: String)]
    /// The body up to ``LocalLimits/bodyBytes``.
    package let body: [UInt8]
    /// How long the body really was.
    package let bodyBytes: Int
    /// Where it came from, without port: the connection's peer, or whom trusted proxies tell of.
    package let client: String
    /// The same as throttles count it; `nil` for a Unix socket.
    package let network: ClientNetwork?
    /// The same in full: 16 bytes (IPv4 mapped), empty for a Unix socket.
    package let address: [UInt8]
    /// What the answer's `X-Request-Id` says.
    package let requestID: String
    /// The connection's own address, on a listener whose requests are all answered in this process.
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

/// The answer to a local request.
package struct LocalResponse: Sendable {
    package var status: Int
    package var fields: [(name: String, value: String)]
    package var body: [UInt8]
    /// What was refused instead of answered; the gateway writes that answer itself and logs the reason.
    package var failure: Failure?
    /// What the log and the metrics say of it; `nil` is `ok`.
    package var reason: ErrorCode?

    package init(status: Int, fields: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// An answer that is refused as requests are refused elsewhere.
    package init(refusing failure: Failure) {
        self.init(status: failure.status, fields: [], body: [])
        self.failure = failure
    }

    /// An answer with a media type and a text.
    package static func text(_ status: Int, _ mediaType: String, _ text: String) -> LocalResponse {
        LocalResponse(
            status: status, fields: [("Content-Type", mediaType), ("Cache-Control", "no-store")], body: Array(text.utf8)
        )
    }
}

/// Answers local requests; runs off the loops and may wait, within ``LocalLimits/patience``.
package typealias LocalHandler = @Sendable (LocalRequest) async -> LocalResponse

/// What answers requests on a listener before anything is routed.
package final class ListenerHandler: Sendable {
    /// The one path that it takes; `nil` takes all.
    private let path: [UInt8]?
    let answer: LocalHandler

    /// - Parameter path: `nil` takes every request.
    package init(path: String? = nil, _ answer: @escaping LocalHandler) {
        self.path = path.map { Array($0.utf8) }
        self.answer = answer
    }

    /// Whether it answers requests for a path, as received.
    func takes(_ asked: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let path else { return true }
        return unsafe path.count == asked.count && path.elementsEqual(asked)
    }
}

/// Bounds of what is answered in this process.
package enum LocalLimits {
    /// How much of a body a handler gets; the rest is counted only.
    package static let bodyBytes = 256 * 1024
    /// How many fields of the gateway's own a head may have, beside those of the client.
    static let ownFields = 256
    /// How long a handler may take.
    package static let patience = Duration.seconds(10)
}
