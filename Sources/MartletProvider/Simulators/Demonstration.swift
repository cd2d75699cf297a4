/// A request that a demo prints as a `curl` command, and what comes back.
public struct Demonstration: Sendable {
    /// Where the request goes.
    public enum Target: Sendable {
        /// A path of the gateway, such as ``SimulatorSite/path`` or `/auth/login/line`, with a query where it has one.
        case gateway(path: String)
        /// A path of the simulator.
        case simulator(path: String)
    }

    /// A header of the request.
    public struct Header: Sendable {
        public let name: String
        /// The value, or what precedes the text that ``source`` gives.
        public let value: String
        /// A path of the simulator whose response's body is a part of the value: the command fetches it each time.
        public let source: String?

        public init(_ name: String, _ value: String = "", followedBy source: String? = nil) {
            self.name = name
            self.value = value
            self.source = source
        }
    }

    /// The expected status, which is printed.
    public let status: Int
    /// What the request shows, in a few words behind the status.
    public let summary: String
    public let target: Target
    public let method: String
    public let headers: [Header]
    /// A text such as JSON; `nil` for no body.
    public let body: String?

    public init(
        _ status: Int, _ summary: String, target: Target, method: String = "GET", headers: [Header] = [],
        body: String? = nil
    ) {
        self.status = status
        self.summary = summary
        self.target = target
        self.method = method
        self.headers = headers
        self.body = body
    }
}
