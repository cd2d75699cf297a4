/// `cors:` of a route: which pages of other origins may use it (CORS).
@frozen package struct CrossOriginConfiguration: Sendable, Equatable {
    /// An entry of `origins`.
    @frozen package enum Origin: Sendable, Equatable {
        /// Every origin.
        case any
        /// `null`, which stands for sandboxed pages, local files and others without an origin.
        case null
        /// One origin, as browsers write it.
        case exact(String)
        /// Every origin of the scheme whose host is below a domain, at the default port.
        ///
        /// - Parameters:
        ///   - prefix: `https://` or `http://`.
        ///   - suffix: the domain with a dot before it, in lower case.
        case subdomains(prefix: String, suffix: String)
    }

    package var origins: [Origin]
    package var methods = ["GET", "HEAD", "POST"]
    /// The request headers that pages may set, beyond those that every page may.
    package var headers: [String] = []
    /// The response headers that pages may read, beyond those that every page may.
    package var exposed: [String] = []
    package var allowsCredentials = false
    /// How long browsers may keep the response to a preflight; `nil` leaves that to them.
    package var maximumAge: Duration?

    package init(origins: [Origin]) { self.origins = origins }
}
