/// An HTTP request to another service.
public struct HTTPCall: Sendable {
    /// The method and the body.
    public enum Content: Sendable {
        /// A GET without a body.
        case none
        /// A POST of `application/x-www-form-urlencoded` fields, not yet encoded.
        case form([(name: String, value: String)])
        /// A POST of these bytes with this `Content-Type`.
        case body([UInt8], type: String)
    }

    /// An `https` URL, or an `http` URL of a loopback address, percent-encoded. Its user info and its query may contain
    /// secrets; it is never logged, and spans have the rest.
    public let url: String
    /// The path of the Unix socket to connect to instead of the URL's host; `nil` for TCP.
    public let socket: String?
    public let content: Content
    public let headers: [(name: String, value: String)]
    /// The timeout of the whole exchange, from name resolution to the last byte.
    public package(set) var timeout: Duration
    /// The maximum size of the response body in bytes; a larger one is an error.
    public let maximumBytes: Int
    /// Whether the call may be retried on a new connection if a reused one closes without a response.
    ///
    /// A call with a single-use value, such as a code, must not be repeatable: it is sent at most once, on a new
    /// connection.
    public let isRepeatable: Bool
    /// Whether the response body is discarded, whatever its size, because only the status matters.
    package var discardsBody = false

    /// - Parameter socket: the path of a Unix socket; the URL's host, such as `localhost`, is then only named in the
    ///   request.
    public init(
        _ url: String, socket: String? = nil, content: Content = .none, headers: [(name: String, value: String)] = [],
        timeout: Duration, maximumBytes: Int, isRepeatable: Bool = false
    ) {
        self.url = url
        self.socket = socket
        self.content = content
        self.headers = headers
        self.timeout = timeout
        self.maximumBytes = maximumBytes
        self.isRepeatable = isRepeatable
    }
}

/// A complete response with any status except a redirect.
public struct HTTPCallResponse: Sendable {
    public let status: Int
    public let body: [UInt8]
    /// The pause that `Retry-After` asks for, up to a day; `nil` without that header.
    public let retryAfter: Duration?

    public init(status: Int, body: [UInt8], retryAfter: Duration? = nil) {
        self.status = status
        self.body = body
        self.retryAfter = retryAfter
    }
}

/// Why there is no response.
public struct HTTPCallError: CodedError {
    public let code: ErrorCode
    /// For operators; may contain the host, never a path or a query.
    public let message: String

    public init(code: ErrorCode, message: String) {
        self.code = code
        self.message = message
    }
}

/// Calls external services: TLS is verified, redirects are not followed, and only repeatable calls are retried.
///
/// Concurrent calls are limited per provider; a call over the limit fails with `fetch.overloaded`.
public protocol HTTPCalling: Sendable {
    /// Sends a call.
    /// - Throws: ``HTTPCallError`` if there is no response.
    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse

    /// Waits for and reserves capacity for a call; use it before consuming a single-use value.
    ///
    /// - Parameter limit: how long to wait.
    /// - Returns: a client that sends calls immediately, one after the other; the reservation ends with its last
    ///   reference.
    /// - Throws: `fetch.overloaded` immediately if too many calls wait, `fetch.timeout` after the limit.
    func reserve(within limit: Duration) async throws(HTTPCallError) -> any HTTPCalling

    /// Whether a call of this owner would be sent or wait now, and not fail with `fetch.overloaded`; returns immediately.
    ///
    /// Check it before expensive preparations.
    func hasCapacity(for owner: WorkOwner) -> Bool
}

extension HTTPCalling {
    /// Returns `self`: without a limit there is nothing to reserve.
    public func reserve(within limit: Duration) async throws(HTTPCallError) -> any HTTPCalling { self }

    /// `true`.
    public func hasCapacity(for owner: WorkOwner) -> Bool { true }
}
