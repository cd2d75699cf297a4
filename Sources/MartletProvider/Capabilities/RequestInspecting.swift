/// A request, as far as a provider may decide by it.
public struct RequestFacts: Sendable, Hashable {
    /// The method, such as `GET`.
    public let method: String
    /// The value of `Host`, or `:authority`, as the client sent it.
    public let host: String
    /// The normalized path, without the query: the one that the route was found by.
    public let path: String
    /// All of its head; `nil` unless the provider reads it: ``RequestInspecting/readsHead``.
    public let head: ReceivedHead?

    public init(method: String, host: String, path: String, head: ReceivedHead? = nil) {
        self.method = method
        self.host = host
        self.path = path
        self.head = head
    }

    /// The text of a part.
    public func text(of part: RequestPart) -> String {
        switch part {
        case .method: method
        case .host: host
        case .path: path
        }
    }
}

/// A part of a request that a provider's decision can depend on.
public enum RequestPart: String, Sendable, Hashable, CaseIterable {
    case method, host, path
}

/// A provider that gets the request with the credential: ``AuthenticationContext/request``.
public protocol RequestInspecting: Authenticating {
    /// The parts of the request that its decisions depend on; empty if they depend on the credential alone.
    ///
    /// A decision that may be reused (``Identity/reusableUntil``) is reused only for requests with the same parts.
    var reuseKey: Set<RequestPart> { get }
    /// Whether it needs ``RequestFacts/head``. Its decisions depend on more than ``reuseKey`` can name then, so the
    /// gateway reuses none of them.
    var readsHead: Bool { get }
}

extension RequestInspecting {
    /// `false`.
    public var readsHead: Bool { false }
}

/// A provider that is asked about a credential only if one of its sources names it, also where it is a route's only
/// provider: one that sends credentials to another system.
///
/// Any other credential is rejected without a call.
public protocol Selective: Authenticating {}
