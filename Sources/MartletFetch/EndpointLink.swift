package import CCurl

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
    /// - Parameter route: gets the list that names the destination under TLS; it has to live as long as the transfer.
    /// - Returns: whether libcurl accepts every option.
    package func apply(
        to handle: UnsafeMutableRawPointer, route: inout UnsafeMutablePointer<curl_slist>?
    ) -> Bool {
        unsafe setVersion(of: handle) && setDestination(of: handle, &route) && setSecurity(of: handle)
    }

    private func setVersion(of handle: UnsafeMutableRawPointer) -> Bool {
        let number: Int =
            switch (version, tls) {
            case (.http1, _): Int(CURL_HTTP_VERSION_1_1)
            case (.http2, nil): Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
            case (.http2, _?): Int(CURL_HTTP_VERSION_2TLS)
            }
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_NOPROGRESS, 1), (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_PATH_AS_IS, 1),
            (CURLOPT_HTTP_VERSION, number), (CURLOPT_FORBID_REUSE, keepsConnection ? 0 : 1),
            (CURLOPT_FRESH_CONNECT, keepsConnection ? 0 : 1),
            // Every destination is an address. Cached ones would stay longer than the endpoints do.
            (CURLOPT_DNS_CACHE_TIMEOUT, 0),
        ]
        return numbers.allSatisfy { unsafe martlet_curl_set_long(handle, $0, $1) == CURLE_OK }
    }

    private func setDestination(
        of handle: UnsafeMutableRawPointer, _ route: inout UnsafeMutablePointer<curl_slist>?
    ) -> Bool {
        switch destination {
        case .unix(let path):
            guard unsafe martlet_curl_set_text(handle, CURLOPT_UNIX_SOCKET_PATH, path) == CURLE_OK else { return false }
        case .tcp(let address, let port):
            guard tls != nil else { break }
            unsafe route = curl_slist_append(nil, "::\(Self.bracketed(address)):\(port)")
            guard unsafe route != nil,
                unsafe martlet_curl_set_list(handle, CURLOPT_CONNECT_TO, route) == CURLE_OK
            else { return false }
        }
        let texts: [(CURLoption, String)] = [
            // The empty string disables proxies from the environment.
            (CURLOPT_PROTOCOLS_STR, scheme), (CURLOPT_PROXY, ""), (CURLOPT_URL, "\(scheme)://\(authority)/"),
        ]
        return texts.allSatisfy { unsafe martlet_curl_set_text(handle, $0, $1) == CURLE_OK }
    }

    private func setSecurity(of handle: UnsafeMutableRawPointer) -> Bool {
        guard let tls else { return true }
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_SSL_VERIFYPEER, tls.verifies ? 1 : 0), (CURLOPT_SSL_VERIFYHOST, tls.verifies ? 2 : 0),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            // A resumed session would not notice a new certificate, and a reload may change an authority's file.
            (CURLOPT_SSL_SESSIONID_CACHE, 0), (CURLOPT_CA_CACHE_TIMEOUT, 60),
        ]
        guard numbers.allSatisfy({ unsafe martlet_curl_set_long(handle, $0, $1) == CURLE_OK }) else { return false }
        let files: [(CURLoption, String?)] = [
            (CURLOPT_CAINFO, tls.authorityFile), (CURLOPT_SSLCERT, tls.certificateFile), (CURLOPT_SSLKEY, tls.keyFile),
        ]
        return files.allSatisfy { option, file in
            guard let file else { return true }
            return unsafe martlet_curl_set_text(handle, option, file) == CURLE_OK
        }
    }
}
