internal import CCurl
package import MartletCore

/// What a transfer to an endpoint of an upstream connects to.
package enum EndpointDestination: Sendable, Hashable {
    /// An address literal, IPv6 without brackets.
    case tcp(address: String, port: UInt16)
    case unix(path: String)
}

/// The protocol version of a transfer.
package enum EndpointVersion: Sendable, Hashable {
    case http1
    /// By ALPN under TLS, with prior knowledge in clear text.
    case http2
}

/// The TLS settings of a transfer: those of its upstream.
package struct EndpointTLS: Sendable, Hashable {
    /// The name or address that the certificate must have.
    package var serverName: String
    /// A PEM file of authorities to trust instead of the system's.
    package var authorityFile: String?
    package var certificateFile: String?
    package var keyFile: String?
    package var verifies = true

    package init(serverName: String) { self.serverName = serverName }
}

/// How an endpoint of an upstream is reached, as options of a curl handle.
///
/// Nothing else has a say: no proxies from the environment, no redirects, no other protocols, no lookup of names.
package struct EndpointLink: Sendable, Hashable {
    package let destination: EndpointDestination
    /// `nil` in clear text.
    package let tls: EndpointTLS?
    package let version: EndpointVersion

    package init(_ destination: EndpointDestination, tls: EndpointTLS?, version: EndpointVersion) {
        (self.destination, self.tls, self.version) = (destination, tls, version)
    }

    /// Whether another transfer may use a connection again.
    ///
    /// libcurl 7.88, that of Debian 12, cannot use one with prior knowledge of HTTP/2 twice: the second transfer fails in
    /// the framing layer.
    package var keepsConnection: Bool { version == .http1 || tls != nil }

    private var scheme: String { tls == nil ? "http" : "https" }

    /// The URL's host, which libcurl verifies under TLS; it connects to the destination in any case.
    private var authority: String {
        switch destination {
        case .unix: "localhost"
        case .tcp(let address, let port): "\(Self.bracketed(tls?.serverName ?? address)):\(port)"
        }
    }

    private static func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
}

extension EndpointLink {
    /// Sets the options of a handle.
    package func apply(to handle: EasyHandle) throws(HTTPCallError) {
        let number: Int =
            switch (version, tls) {
            case (.http1, _): Int(CURL_HTTP_VERSION_1_1)
            case (.http2, nil): Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
            case (.http2, _?): Int(CURL_HTTP_VERSION_2TLS)
            }
        try handle.set([
            (CURLOPT_PATH_AS_IS, 1), (CURLOPT_HTTP_VERSION, number), (CURLOPT_FORBID_REUSE, keepsConnection ? 0 : 1),
            (CURLOPT_FRESH_CONNECT, keepsConnection ? 0 : 1),
            // Every destination is an address. Cached ones would stay longer than the endpoints do.
            (CURLOPT_DNS_CACHE_TIMEOUT, 0),
        ])
        switch destination {
        case .unix(let path): try handle.set([(CURLOPT_UNIX_SOCKET_PATH, path)])
        case .tcp(let address, let port):
            if tls != nil {
                try handle.set(CURLOPT_CONNECT_TO, lines: ["::\(Self.bracketed(address)):\(port)"])
            }
        }
        try handle.set([
            // The empty string disables proxies from the environment.
            (CURLOPT_PROTOCOLS_STR, scheme), (CURLOPT_PROXY, ""), (CURLOPT_URL, "\(scheme)://\(authority)/"),
        ])
        try tls?.apply(to: handle)
    }
}

extension EndpointTLS {
    fileprivate func apply(to handle: EasyHandle) throws(HTTPCallError) {
        try handle.set([
            (CURLOPT_SSL_VERIFYPEER, verifies ? 1 : 0), (CURLOPT_SSL_VERIFYHOST, verifies ? 2 : 0),
            // A resumed session would not notice a new certificate.
            (CURLOPT_SSL_SESSIONID_CACHE, 0),
        ])
        if let authorityFile { try handle.set([(CURLOPT_CAINFO, authorityFile)]) }
        if let certificateFile { try handle.set([(CURLOPT_SSLCERT, certificateFile)]) }
        if let keyFile { try handle.set([(CURLOPT_SSLKEY, keyFile)]) }
    }
}
