public import MartletCore

/// A request of a provider to a service outside.
public struct HTTPCall: Sendable {
    /// What is sent beside the head.
    public enum Content: Sendable {
        /// Nothing: a GET.
        case none
        /// A POST of `application/x-www-form-urlencoded` fields, which are encoded on the way.
        case form([(name: String, value: String)])
    }

    /// The whole URL, its parts encoded; it may hold secrets and is never logged.
    public let url: String
    public let content: Content
    public let headers: [(name: String, value: String)]
    public let timeout: Duration
    /// An answer with a longer body is a failure.
    public let maximumBytes: Int
    /// Whether the call may be sent again on a new connection where a kept one ended under it without a response.
    ///
    /// A call that holds something that works once, such as a code, must not be repeatable: it is sent at most once, on a
    /// connection of its own.
    public let isRepeatable: Bool

    public init(
        _ url: String, content: Content = .none, headers: [(name: String, value: String)] = [], timeout: Duration,
        maximumBytes: Int, isRepeatable: Bool = false
    ) {
        self.url = url
        self.content = content
        self.headers = headers
        self.timeout = timeout
        self.maximumBytes = maximumBytes
        self.isRepeatable = isRepeatable
    }
}

/// What the service answered, whatever its status.
public struct HTTPAnswer: Sendable {
    public let status: Int
    public let body: [UInt8]

    public init(status: Int, body: [UInt8]) {
        self.status = status
        self.body = body
    }
}

/// Why there is no answer.
public struct HTTPCallError: Error, Sendable {
    public let code: ErrorCode
    /// For operators; holds no part of the URL.
    public let message: String

    public init(code: ErrorCode, message: String) {
        self.code = code
        self.message = message
    }
}

/// Calls services outside: TLS is verified, redirects are not followed, nothing is sent twice that is not repeatable.
///
/// How many calls are under way is bounded for each provider by itself; what is too much fails as `fetch.overloaded`.
public protocol HTTPCalling: Sendable {
    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPAnswer

    /// Waits until a call may go out, and keeps that right: to be asked for before something is used up that works once.
    ///
    /// - Parameter limit: how long to wait.
    /// - Returns: what sends calls at once, one after the other; the right ends with the last reference to it.
    /// - Throws: `fetch.overloaded` at once when too many wait, `fetch.timeout` after the limit.
    func reserve(within limit: Duration) async throws(HTTPCallError) -> any HTTPCalling
}

extension HTTPCalling {
    /// Nothing is bounded, so there is nothing to wait for.
    public func reserve(within limit: Duration) async throws(HTTPCallError) -> any HTTPCalling { self }
}
