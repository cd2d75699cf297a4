private import CCurl
internal import MartletCore

/// A URL that may be fetched: https, or http to a loopback address; parsed by libcurl itself, so that the checked
/// target is the one that it connects to.
struct FetchTarget: Equatable {
    let url: String
    let host: String
    let isSecure: Bool

    init(_ url: String) throws(HTTPCallError) {
        // libcurl accepts an extra slash.
        let slashes = url.drop { $0 != ":" }.prefix(4)
        guard url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), slashes != ":///", slashes.hasPrefix("://"),
            let parts = unsafe curl_url()
        else { throw .urlInvalid() }
        defer { unsafe curl_url_cleanup(parts) }
        guard unsafe curl_url_set(parts, CURLUPART_URL, url, UInt32(CURLU_DISALLOW_USER)) == CURLUE_OK,
            let scheme = unsafe FetchTarget.part(CURLUPART_SCHEME, of: parts),
            let host = unsafe FetchTarget.part(CURLUPART_HOST, of: parts), !host.isEmpty
        else { throw .urlInvalid() }
        switch scheme {
        case "https": isSecure = true
        case "http":
            guard FetchTarget.isLoopback(host) else { throw .insecure(host) }
            isSecure = false
        default: throw .urlInvalid()
        }
        self.url = url
        self.host = host
    }

    private static func part(_ part: CURLUPart, of parts: OpaquePointer) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard unsafe curl_url_get(parts, part, &text, 0) == CURLUE_OK, let text = unsafe text else { return nil }
        defer { unsafe curl_free(text) }
        return unsafe String(cString: text)
    }

    /// `localhost`, `127.0.0.0/8` or `::1`; libcurl has normalized address literals.
    private static func isLoopback(_ host: String) -> Bool {
        if host.lowercased() == "localhost" || host == "[::1]" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}
