/// What a client's listener says about its connections; plain values.
struct ListenerRules: Sendable {
    /// Connections are under TLS.
    var isSecure = false
    /// HTTP/2 is spoken to clients that ask for it.
    var offersHTTP2 = false
    /// Connections begin with a PROXY protocol header.
    var takesProxyHeader = false
    /// Peers that come through its Unix socket are believed.
    var isTrusted = false
    /// The https port that every request is sent to; 0 serves requests.
    var redirectPort: UInt16 = 0
    /// `Strict-Transport-Security: max-age`, in seconds; 0 says nothing.
    var strictTransportSeconds: Int64 = 0
}
