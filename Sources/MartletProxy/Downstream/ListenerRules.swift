/// The listener's settings for its connections; plain values.
struct ListenerRules: Sendable {
    /// Connections use TLS.
    var isSecure = false
    /// HTTP/2 is offered.
    var offersHTTP2 = false
    /// Connections begin with a PROXY protocol header.
    var expectsProxyHeader = false
    /// Peers on its Unix socket are trusted.
    var isTrusted = false
    /// The https port that every request is redirected to; 0 serves requests.
    var redirectPort: UInt16 = 0
    /// `Strict-Transport-Security: max-age`, in seconds; 0 sends no header.
    var strictTransportSeconds: Int64 = 0
}
