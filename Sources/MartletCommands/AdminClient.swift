internal import CCurl
internal import MartletCore
internal import MartletServer

/// An HTTP client for the admin listener: libcurl, one request at a time, with a timeout.
@safe final class AdminClient {
    struct Response {
        let status: Int
        let body: [UInt8]
    }

    private static let responseLimit = 64 * 1024 * 1024
    /// Once in the process, before the first handle.
    private static let isReady = martlet_curl_start() == CURLE_OK

    private let target: AdminTarget
    /// Of a whole request; `nil` for a stream, which ends when one of both sides ends it.
    private let timeout: Duration?
    private var body: [UInt8] = []
    /// Gets the parts of a stream as they come; `false` ends it.
    private var receive: (([UInt8]) -> Bool)?
    private var isTooLarge = false

    init(_ target: AdminTarget, timeout: Duration?) { (self.target, self.timeout) = (target, timeout) }

    /// - Parameters:
    ///   - path: with its query, escaped.
    ///   - json: the body.
    ///   - fields: more header fields.
    ///   - receive: gets the body of a 200 in parts instead of the response, until it returns `false`.
    /// - Throws: `server.not_running` if there is no connection, `server.certificate_untrusted`,
    ///   `server.handshake_failed`, `server.not_answering` without a complete response in time.
    func request(
        _ path: String, method: String = "GET", json: [UInt8]? = nil, fields: [(name: String, value: String)] = [],
        receive: (([UInt8]) -> Bool)? = nil
    ) throws(StartError) -> Response {
        guard AdminClient.isReady, let handle = unsafe curl_easy_init() else { throw setUpFailed }
        defer { unsafe curl_easy_cleanup(handle) }
        var list: UnsafeMutablePointer<curl_slist>?
        defer { unsafe curl_slist_free_all(list) }
        (body, isTooLarge, self.receive) = ([], false, receive)
        // An empty value removes the field, which libcurl would fill in for a form.
        for field in target.fields + fields + [("Content-Type", json == nil ? "" : "application/json")] {
            guard let longer = unsafe curl_slist_append(list, "\(field.0): \(field.1)") else { throw setUpFailed }
            unsafe list = longer
        }
        unsafe try configure(handle, path, method, list)
        if let json {
            try check(unsafe martlet_curl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(json.count)))
            try check(unsafe martlet_curl_set_bytes(handle, CURLOPT_COPYPOSTFIELDS, json))
        } else if method != "GET" {
            try check(unsafe martlet_curl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, 0))
            try check(unsafe martlet_curl_set_bytes(handle, CURLOPT_COPYPOSTFIELDS, [UInt8(0)]))
        }
        try check(unsafe martlet_curl_set_text(handle, CURLOPT_CUSTOMREQUEST, method))
        let result = unsafe curl_easy_perform(handle)
        let status = unsafe martlet_curl_status(handle)
        // A stream that this side has ended, or the gateway when it stops.
        let isEnded = receive != nil && status == 200
        guard result == CURLE_OK || isEnded else { throw failure(result) }
        return Response(status: status, body: body)
    }

    private func configure(
        _ handle: UnsafeMutableRawPointer, _ path: String, _ method: String, _ list: UnsafeMutablePointer<curl_slist>?
    ) throws(StartError) {
        var numbers: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_CONNECTTIMEOUT_MS, 3000),
            (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, target.isPinned ? 0 : 2),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)), (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)),
            (CURLOPT_DISALLOW_USERNAME_IN_URL, 1), (CURLOPT_NOPROGRESS, 1),
        ]
        if let timeout { numbers.append((CURLOPT_TIMEOUT_MS, Int(clamping: max(timeout.wholeMilliseconds, 1)))) }
        for (option, value) in numbers { try check(unsafe martlet_curl_set_long(handle, option, value)) }
        var texts: [(CURLoption, String)] = [
            (CURLOPT_PROTOCOLS_STR, "http,https"), (CURLOPT_URL, target.url + path), (CURLOPT_PROXY, ""),
            (CURLOPT_USERAGENT, "martlet/\(Gateway.version)"),
        ]
        if let socket = target.socket { texts.append((CURLOPT_UNIX_SOCKET_PATH, socket)) }
        if let authority = target.authorityFile { texts.append((CURLOPT_CAINFO, authority)) }
        for (option, value) in texts { try check(unsafe martlet_curl_set_text(handle, option, value)) }
        try check(unsafe martlet_curl_set_list(handle, CURLOPT_HTTPHEADER, list))
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        try check(unsafe martlet_curl_set_body_sink(handle, receiveBody, context))
    }

    /// Takes a part of the body; `false` ends the transfer.
    fileprivate func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if let receive { return unsafe receive(Array(bytes)) }
        guard bytes.count <= AdminClient.responseLimit - body.count else {
            isTooLarge = true
            return false
        }
        unsafe body.append(contentsOf: bytes)
        return true
    }

    // MARK: Errors

    private func check(_ result: CURLcode) throws(StartError) {
        guard result == CURLE_OK else { throw setUpFailed }
    }

    private var setUpFailed: StartError {
        StartError(code: "server.client_failed", message: "libcurl setup failed", exit: .internalFault)
    }

    private var isEncrypted: Bool { target.url.hasPrefix("https:") }

    private var invalid: (ErrorCode, String) { ("server.not_answering", "no valid response from \(target.name)") }

    /// The listener has ended the connection: with TLS 1.3 that is seen as late as the response is read.
    private func handshakeFailure(_ result: CURLcode) -> (ErrorCode, String) {
        let reason =
            target.requiresCertificate
            ? "admin.tls.client_auth is required, and commands have no client certificate"
            : "TLS failed, or the listener requires a client certificate (\(unsafe String(cString: curl_easy_strerror(result))))"
        return ("server.handshake_failed", "\(target.name) has ended the connection: \(reason)")
    }

    private func failure(_ result: CURLcode) -> StartError {
        let (code, message): (ErrorCode, String)
        switch result {
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST:
            (code, message) = ("server.not_running", "no gateway is listening on \(target.name)")
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CACERT_BADFILE:
            let reason = unsafe String(cString: curl_easy_strerror(result))
            (code, message) = ("server.certificate_untrusted", "\(target.name): \(reason)")
        case _ where isTooLarge:
            (code, message) = ("server.not_answering", "the response from \(target.name) is too large")
        case CURLE_OPERATION_TIMEDOUT:
            (code, message) = ("server.not_answering", "no valid response from \(target.name) in time")
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING:
            (code, message) = isEncrypted ? handshakeFailure(result) : invalid
        default: (code, message) = invalid
        }
        return StartError(code: code, message: message, exit: .unavailable)
    }
}

/// libcurl's write callback; a return value other than `size * count` ends the transfer.
// The context is the client, which outlives the transfer: it waits for its end.
private func receiveBody(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let start = unsafe start, let context = unsafe context else { return 0 }
    let client = unsafe Unmanaged<AdminClient>.fromOpaque(context).takeUnretainedValue()
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    return unsafe client.append(bytes) ? size &* count : -1
}
