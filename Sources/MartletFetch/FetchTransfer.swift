internal import CCurl
internal import MartletCore

/// A request in progress with its curl handle; used on the fetcher's thread only.
@safe final class FetchTransfer: RunningTransfer {
    /// The maximum total size of the response's header lines in bytes.
    private static let headBytes = 64 * 1024
    /// In seconds.
    private static let longestRetryAfter: Int64 = 86_400

    let fetch: PendingFetch
    let handle: UnsafeMutableRawPointer
    private let target: FetchTarget
    private let route: OutboundRoute
    private let maximumBytes: Int
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var body: [UInt8] = []
    private var headCount = 0
    private var isTooLarge = false
    /// How often libcurl has tried to send the request.
    private var attempts = 0

    init(_ fetch: PendingFetch, options: FetchOptions) throws(HTTPCallError) {
        let request = fetch.request
        target = try FetchTarget(request.url)
        guard let handle = unsafe curl_easy_init() else { throw .setUpFailed }
        self.fetch = fetch
        route = options.route
        unsafe self.handle = handle
        maximumBytes = request.maximumBytes
        unsafe fields = nil
        try configure(options)
        var headers = request.headers
        if case .body(_, let type) = request.content { headers.append((name: "Content-Type", value: type)) }
        try setFields(headers)
        try setContent(request.content)
    }

    var wasCancelled: Bool { fetch.wasCancelled }

    deinit {
        unsafe curl_easy_cleanup(handle)
        unsafe curl_slist_free_all(fields)
    }

    func end(_ result: CURLcode) { fetch.finish(outcome(result)) }

    func fail(_ error: HTTPCallError) { fetch.fail(error) }

    /// The outcome of the transfer with a libcurl result.
    private func outcome(_ result: CURLcode) -> PendingFetch.Outcome {
        if isTooLarge { return .failure(.tooLarge(target.host, maximumBytes)) }
        if isForbiddenRetry { return .failure(.notRetried(target.host)) }
        guard result == CURLE_OK else {
            if let reason = unsafe route.failure(result, handle), target.isSecure {
                return .failure(.lostAtProxy(target.host, reason))
            }
            return .failure(.transfer(result, host: target.host))
        }
        let status = unsafe martlet_curl_status(handle)
        guard !(300..<400).contains(status) else { return .failure(.redirected(target.host)) }
        return .success(HTTPCallResponse(status: status, body: body, retryAfter: retryAfter))
    }

    /// libcurl parses both forms of the header.
    private var retryAfter: Duration? {
        let seconds = Int64(unsafe martlet_curl_retry_after(handle))
        return seconds > 0 ? .seconds(min(seconds, FetchTransfer.longestRetryAfter)) : nil
    }

    /// Whether libcurl tried to retry a request that must not be retried.
    private var isForbiddenRetry: Bool { attempts > 1 && !fetch.request.isRepeatable }

    /// Called before each attempt to send the request; `false` aborts the transfer.
    fileprivate func beginAttempt() -> Bool {
        attempts += 1
        return !isForbiddenRetry
    }

    /// Appends body bytes; `false` aborts the transfer.
    fileprivate func appendBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if fetch.request.discardsBody { return true }
        guard bytes.count <= maximumBytes - body.count else {
            isTooLarge = true
            return false
        }
        unsafe body.append(contentsOf: bytes)
        return true
    }

    /// Counts the bytes of a header line; `false` aborts the transfer.
    fileprivate func countHeader(_ count: Int) -> Bool {
        headCount += count
        isTooLarge = headCount > FetchTransfer.headBytes
        return !isTooLarge
    }

    private func configure(_ options: FetchOptions) throws(HTTPCallError) {
        let milliseconds = Int(clamping: max(fetch.request.timeout.wholeMilliseconds, 1))
        let isRepeatable = fetch.request.isRepeatable
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_TIMEOUT_MS, milliseconds), (CURLOPT_CONNECTTIMEOUT_MS, milliseconds),
            (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            // libcurl retries any method if a reused connection closes, or if an HTTP/2 stream is refused or excluded
            // by a GOAWAY.
            (CURLOPT_HTTP_VERSION, Int(isRepeatable ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)),
            (CURLOPT_FRESH_CONNECT, isRepeatable ? 0 : 1), (CURLOPT_FORBID_REUSE, isRepeatable ? 0 : 1),
            // Over plaintext it would wait for the first response to learn that multiplexing is unavailable.
            (CURLOPT_PIPEWAIT, target.isSecure && isRepeatable ? 1 : 0), (CURLOPT_DISALLOW_USERNAME_IN_URL, 1),
            (CURLOPT_NOPROGRESS, 1),
        ]
        for (option, value) in numbers { try check(unsafe martlet_curl_set_long(handle, option, value)) }
        var texts: [(CURLoption, String)] = [
            (CURLOPT_PROTOCOLS_STR, target.isSecure ? "https" : "http"), (CURLOPT_URL, target.url),
            (CURLOPT_USERAGENT, options.userAgent),
        ]
        if let socket = fetch.request.socket { texts.append((CURLOPT_UNIX_SOCKET_PATH, socket)) }
        for (option, value) in texts { try check(unsafe martlet_curl_set_text(handle, option, value)) }
        guard unsafe options.route.apply(to: handle, isSecure: target.isSecure) else { throw .setUpFailed }
        if !fetch.request.discardsBody {
            try check(unsafe martlet_curl_set_size(handle, CURLOPT_MAXFILESIZE_LARGE, curl_off_t(maximumBytes)))
        }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        // The options above should prevent retries by libcurl; this callback enforces it.
        try check(unsafe martlet_curl_set_gate(handle, allowSending, context))
        try check(unsafe martlet_curl_set_body_sink(handle, receiveBody, context))
        try check(unsafe martlet_curl_set_head_sink(handle, receiveHead, context))
    }

    private func setFields(_ headers: [(name: String, value: String)]) throws(HTTPCallError) {
        for (name, value) in headers {
            guard !name.isEmpty, !value.isEmpty, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x3A }),
                value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else { throw .headerInvalid }
            guard let longer = unsafe curl_slist_append(fields, "\(name): \(value)") else { throw .setUpFailed }
            unsafe fields = longer
        }
        if unsafe fields != nil { try check(unsafe martlet_curl_set_list(handle, CURLOPT_HTTPHEADER, fields)) }
    }

    private func setContent(_ content: HTTPCall.Content) throws(HTTPCallError) {
        let bytes: [UInt8]
        switch content {
        case .none: return try check(unsafe martlet_curl_set_long(handle, CURLOPT_HTTPGET, 1))
        case .form(let form): bytes = encodeForm(form)
        case .body(let body, _): bytes = body
        }
        try check(unsafe martlet_curl_set_long(handle, CURLOPT_POST, 1))
        try check(unsafe martlet_curl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes.count)))
        try check(unsafe martlet_curl_set_bytes(handle, CURLOPT_COPYPOSTFIELDS, bytes))
    }

    private func check(_ status: CURLcode) throws(HTTPCallError) {
        guard status == CURLE_OK else { throw .setUpFailed }
    }
}

/// libcurl's write callback; a return value other than `size * count` aborts the transfer.
// The context is the transfer, which outlives its handle: the handle is cleaned up in its deinit.
private func receiveBody(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let start = unsafe start, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<FetchTransfer>.fromOpaque(context).takeUnretainedValue()
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    return unsafe transfer.appendBody(bytes) ? size &* count : -1
}

/// libcurl's header callback.
private func receiveHead(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<FetchTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.countHeader(size &* count) ? size &* count : -1
}

/// libcurl's prerequest callback: decides whether the request may be sent on the new connection.
private func allowSending(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ own: UnsafeMutablePointer<CChar>?,
    _ peerPort: Int32, _ ownPort: Int32
) -> Int32 {
    guard let context = unsafe context else { return CURL_PREREQFUNC_ABORT }
    let transfer = unsafe Unmanaged<FetchTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.beginAttempt() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}
