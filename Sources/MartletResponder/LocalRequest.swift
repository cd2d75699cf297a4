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
    /// The certificate in DER that the client has proved, of an authority that the listener trusts; only on a listener
    /// whose requests are all handled in this process.
    package var clientCertificate: [UInt8]?
    /// The URL as the client sees it; only of a request with a proof of possession.
    package var clientURL: ClientURL?
    /// Where the handler notes the caller; `nil` where no handler does.
    package var callerNote: CallerNote?

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

    /// Who causes what is done for it, while the caller is not known: the client's network.
    package var owner: WorkOwner { network?.workOwner ?? .anonymous }

    /// The value of the first field of that name, in any case.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}
