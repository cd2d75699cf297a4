public import MartletJSON

/// The simulator of the service behind a provider, for one demo.
public struct Simulator: Sendable {
    /// Responds to a request; called on any thread, and for many requests at the same time.
    ///
    /// A request whose body has more than 256 KiB does not reach it, and it has 10 s. An error becomes a response with
    /// status 500 and a line of the log.
    public typealias Handler = @Sendable (_ request: SimulatedRequest) async throws -> SimulatedResponse

    /// The provider's block in the demo's configuration, without `kind`.
    public let configuration: JSONObject
    /// Files that the block names, by their names in ``SimulatorSite/folder``; only this user may read them.
    public let files: [String: [UInt8]]
    /// The commands to print, in order.
    public let demonstrations: [Demonstration]
    /// What serves the simulator's requests.
    public let handler: Handler

    public init(
        configuration: JSONObject, files: [String: [UInt8]] = [:], demonstrations: [Demonstration],
        handler: @escaping Handler
    ) {
        self.configuration = configuration
        self.files = files
        self.demonstrations = demonstrations
        self.handler = handler
    }
}

/// A request to a simulator.
public struct SimulatedRequest: Sendable {
    public let method: String
    /// Normalized, without the query.
    public let path: String
    /// The part behind the `?`, as received; empty if there is none.
    public let query: String
    /// In order, names as received.
    public let headers: [(name: String, value: String)]
    /// The whole body.
    public let body: [UInt8]

    public init(
        method: String, path: String, query: String = "", headers: [(name: String, value: String)] = [],
        body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
    }

    /// The value of the first header of that name, in any case.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// The response of a simulator.
public struct SimulatedResponse: Sendable {
    /// 200 to 599.
    public let status: Int
    public let headers: [(name: String, value: String)]
    /// At most 1 MiB.
    public let body: [UInt8]

    public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A response with a JSON object.
    public static func json(_ object: JSONObject, status: Int = 200) -> SimulatedResponse {
        SimulatedResponse(status: status, headers: [("Content-Type", "application/json")], body: JSON.write(object))
    }

    /// A response with a plain text.
    public static func text(_ text: String, status: Int = 200) -> SimulatedResponse {
        SimulatedResponse(
            status: status, headers: [("Content-Type", "text/plain; charset=utf-8")], body: Array(text.utf8))
    }
}
