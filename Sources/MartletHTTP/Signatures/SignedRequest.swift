/// A request as signatures describe it (RFC 9421 §2): what the client sent, before any rewriting.
package struct SignedRequest: Sendable {
    /// One field line.
    package struct Field: Sendable {
        /// In lower case.
        package let name: String
        package let value: [UInt8]

        package init(name: String, value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    package var method: [UInt8]
    /// `http` or `https`.
    package var scheme: [UInt8]
    /// The value of `Host` or `:authority`.
    package var authority: [UInt8]
    package var path: [UInt8]
    /// Without the question mark; `nil` if the target has none.
    package var query: [UInt8]?
    /// In their order.
    package var fields: [Field]

    package init(
        method: [UInt8], scheme: [UInt8], authority: [UInt8], path: [UInt8], query: [UInt8]?, fields: [Field]
    ) {
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.query = query
        self.fields = fields
    }
}
