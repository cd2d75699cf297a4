/// The listener's settings for its connections; plain values.
package struct ListenerRules: Sendable {
    /// Connections use TLS.
    package var isSecure = false
    /// HTTP/2 is offered.
    package var offersHTTP2 = false
    /// Connections begin with a PROXY protocol header.
    package var expectsProxyHeader = false
    /// Peers on its Unix socket are trusted.
    package var isTrusted = false
    /// The https port that every request is redirected to; 0 serves requests.
    package var redirectPort: UInt16 = 0
    /// `Strict-Transport-Security: max-age`, in seconds; 0 sends no header.
    package var strictTransportSeconds: Int64 = 0

    package init() {}
}
