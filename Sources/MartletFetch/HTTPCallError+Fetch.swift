internal import CCurl
package import MartletCore

extension HTTPCallError {
    static func urlInvalid() -> HTTPCallError {
        HTTPCallError(code: .fetchURLInvalid, message: "URL malformed or contains a user")
    }

    static func insecure(_ host: String) -> HTTPCallError {
        HTTPCallError(code: .fetchInsecure, message: "\(host) is not a loopback address and needs https")
    }

    /// Maps a libcurl result.
    static func transfer(_ code: CURLcode, host: String) -> HTTPCallError {
        let mapped: ErrorCode =
            switch code {
            case CURLE_OPERATION_TIMEDOUT: .fetchTimeout
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT: .fetchUnreachable
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR: .fetchUntrusted
            case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER: .fetchTLSFailed
            case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM: .fetchTrustUnreadable
            case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR: .fetchCut
            case CURLE_FILESIZE_EXCEEDED: .fetchTooLarge
            case CURLE_URL_MALFORMAT: .fetchURLInvalid
            default: .fetchFailed
            }
        return HTTPCallError(code: mapped, message: "\(host): \(code.reason)")
    }

    /// - Parameter reason: what the proxy did.
    static func lostAtProxy(_ host: String, _ reason: String) -> HTTPCallError {
        HTTPCallError(code: .fetchUnreachable, message: "\(host): \(reason)")
    }

    static func redirected(_ host: String) -> HTTPCallError {
        HTTPCallError(code: .fetchRedirected, message: "\(host) responded with a redirect")
    }

    static func tooLarge(_ host: String, _ limit: Int) -> HTTPCallError {
        HTTPCallError(code: .fetchTooLarge, message: "response from \(host) larger than \(limit) bytes")
    }

    static func notRetried(_ host: String) -> HTTPCallError {
        HTTPCallError(code: .fetchCut, message: "no response from \(host), and the request must not be retried")
    }

    static let headerInvalid = HTTPCallError(
        code: .fetchHeaderInvalid, message: "request header empty or contains a control character")
    package static let setUpFailed = HTTPCallError(code: .fetchFailed, message: "libcurl setup failed")
    static let cancelled = HTTPCallError(code: .fetchCancelled, message: "cancelled by the caller")
    static let stopped = HTTPCallError(code: .fetchStopped, message: "fetcher stopped")
    static let overloaded = HTTPCallError(code: .fetchOverloaded, message: "too many requests in flight")
    static let noSlot = HTTPCallError(code: .fetchTimeout, message: "timed out waiting for a request slot")
}

extension ErrorCode {
    package static let fetchURLInvalid: ErrorCode = "fetch.url_invalid"
    package static let fetchInsecure: ErrorCode = "fetch.insecure_url"
    package static let fetchHeaderInvalid: ErrorCode = "fetch.header_invalid"
    package static let fetchTimeout: ErrorCode = "fetch.timeout"
    package static let fetchUnreachable: ErrorCode = "fetch.unreachable"
    package static let fetchUntrusted: ErrorCode = "fetch.certificate_untrusted"
    package static let fetchTLSFailed: ErrorCode = "fetch.tls_failed"
    package static let fetchTrustUnreadable: ErrorCode = "fetch.ca_unreadable"
    package static let fetchCut: ErrorCode = "fetch.cut"
    package static let fetchTooLarge: ErrorCode = "fetch.too_large"
    package static let fetchRedirected: ErrorCode = "fetch.redirected"
    package static let fetchFailed: ErrorCode = "fetch.failed"
    package static let fetchCancelled: ErrorCode = "fetch.cancelled"
    package static let fetchStopped: ErrorCode = "fetch.stopped"
    package static let fetchOverloaded: ErrorCode = "fetch.overloaded"
}
