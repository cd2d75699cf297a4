internal import CCurl
package import MartletCore

/// How https calls reach their hosts: whom they trust, and through which proxy they go.
package struct OutboundRoute: Sendable, Hashable {
    /// A PEM file of certificate authorities to trust instead of the system's.
    package var caFile: String?
    /// The URL of an HTTP proxy; it may have a password.
    package var proxy: String?
    /// The proxy's host and port, for messages.
    package var proxyLabel: String?
    /// Hosts that are called directly.
    package var exceptions: [String] = []

    package init() {}

    /// Sets the options of a handle.
    /// - Parameter isSecure: whether the call is https; others go to loopback addresses and collectors nearby, directly.
    package func apply(
        to handle: EasyHandle, url: String, isSecure: Bool, userAgent: String
    ) throws(HTTPCallError) {
        var texts: [(CURLoption, String)] = [
            (CURLOPT_PROTOCOLS_STR, isSecure ? "https" : "http,https"), (CURLOPT_URL, url),
            (CURLOPT_USERAGENT, userAgent),
            // The empty string disables proxies from the environment, which are read elsewhere.
            (CURLOPT_PROXY, isSecure ? proxy ?? "" : ""),
        ]
        // An empty list would be that of the environment.
        if isSecure, proxy != nil { texts.append((CURLOPT_NOPROXY, exceptions.joined(separator: ","))) }
        if let caFile {
            texts.append((CURLOPT_CAINFO, caFile))
            if proxy?.hasPrefix("https:") == true { texts.append((CURLOPT_PROXY_CAINFO, caFile)) }
        }
        try handle.set(texts)
        try handle.set([(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)])
    }

    /// What the proxy did, for an error of libcurl; empty if the call was not lost at it.
    func failure(_ result: CURLcode, _ handle: EasyHandle) -> String? {
        guard let proxyLabel else { return nil }
        let status = unsafe martlet_curl_connect_status(handle.pointer)
        if status >= 300 { return "the proxy \(proxyLabel) rejects the connection with status \(status)" }
        switch result {
        case CURLE_COULDNT_RESOLVE_PROXY: return "the proxy \(proxyLabel) has an unknown name"
        case CURLE_COULDNT_CONNECT: return "the proxy \(proxyLabel) cannot be reached"
        default: return nil
        }
    }
}
