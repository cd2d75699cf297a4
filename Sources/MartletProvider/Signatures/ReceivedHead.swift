internal import MartletCore

/// The head of a request as the client sent it, before the gateway changes anything.
public struct ReceivedHead: Sendable, Hashable {
    /// One field line.
    public struct Field: Sendable, Hashable {
        /// In lower case.
        public let name: String
        /// Without the white space around it.
        public let value: [UInt8]

        public init(name: String, value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    /// The method, such as `GET`.
    public let method: String
    /// `http` or `https`; behind a trusted proxy, what its `X-Forwarded-Proto` says.
    public let scheme: String
    /// The value of `Host` or `:authority`; behind a trusted proxy, that of its `X-Forwarded-Host`.
    public let authority: String
    /// The path, not normalized.
    public let path: String
    /// Without the question mark; `nil` if the target has none.
    public let query: String?
    /// All fields, in their order.
    public let fields: [Field]
    /// Whether a body follows.
    public let hasBody: Bool

    public init(
        method: String, scheme: String, authority: String, path: String, query: String?, fields: [Field],
        hasBody: Bool
    ) {
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.query = query
        self.fields = fields
        self.hasBody = hasBody
    }

    /// The values of the fields with a name, in their order.
    /// - Parameter name: in lower case.
    public func values(of name: String) -> [[UInt8]] {
        fields.filter { $0.name.hasSameBytes(as: name) }.map(\.value)
    }
}
