/// The URL of a request as its client sees it, without the query; a proof of possession is for one (RFC 9449 §4.2).
package struct ClientURL: Sendable, Equatable {
    /// `http` or `https`.
    package let scheme: String
    /// The host, with its port.
    package let authority: String
    /// As the client sent it.
    package let path: String

    package init(scheme: String, authority: String, path: String) {
        self.scheme = scheme
        self.authority = authority
        self.path = path
    }
}
