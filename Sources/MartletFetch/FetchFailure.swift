internal import CCurl
package import MartletCore

/// Why there is no answer.
package struct FetchFailure: Error, Sendable, CustomStringConvertible {
    package let code: ErrorCode
    /// For operators; names the host at most, never a path or a query.
    package let message: String

    package var description: String { "\(message) [\(code)]" }

    static func urlInvalid() -> FetchFailure {
        FetchFailure(code: .fetchURLInvalid, message: "the URL is malformed or names a user")
    }

    static func insecure(_ host: String) -> FetchFailure {
        FetchFailure(code: .fetchInsecure, message: "\(host) is not a loopback address and wants https")
    }

    /// What libcurl's verdict means to us.
    static func transfer(_ code: CURLcode, host: String) -> FetchFailure {
        let mine: ErrorCode =
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
        let reason = unsafe String(cString: curl_easy_strerror(code))
        return FetchFailure(code: mine, message: "\(host): \(reason)")
    }

    static func redirected(_ host: String) -> FetchFailure {
        FetchFailure(code: .fetchRedirected, message: "\(host) answered with a redirect")
    }

    static func tooLarge(_ host: String, _ limit: Int) -> FetchFailure {
        FetchFailure(code: .fetchTooLarge, message: "\(host) answered with more than \(limit) bytes")
    }

    static func notRepeated(_ host: String) -> FetchFailure {
        FetchFailure(code: .fetchCut, message: "\(host) did not respond, and the request must not be sent twice")
    }

    static let headerInvalid = FetchFailure(
        code: .fetchHeaderInvalid, message: "a header of the request is empty or holds a control character")
    static let setUpFailed = FetchFailure(code: .fetchFailed, message: "libcurl could not be set up")
    static let cancelled = FetchFailure(code: .fetchCancelled, message: "the caller has gone")
    static let stopped = FetchFailure(code: .fetchStopped, message: "the fetcher has stopped")
    static let overloaded = FetchFailure(code: .fetchOverloaded, message: "too many requests are under way")
    static let noSlot = FetchFailure(code: .fetchTimeout, message: "too many requests were under way for too long")
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
