internal import CCurl
internal import MartletCore

/// One request under way, with its handle; on the fetcher's thread only.
@safe final class FetchTransfer {
    /// Bytes that all header lines of an answer may have together.
    private static let headBytes = 64 * 1024

    let ticket: FetchTicket
    let handle: UnsafeMutableRawPointer
    private let target: FetchTarget
    private let maximumBytes: Int
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var body: [UInt8] = []
    private var headCount = 0
    private var isTooLarge = false
    /// How often libcurl was about to send the request.
    private var attempts = 0

    init(_ ticket: FetchTicket, options: FetchOptions) throws(FetchFailure) {
        let request = ticket.request
        target = try FetchTarget(request.url)
        guard let handle = unsafe curl_easy_init() else { throw .setUpFailed }
        self.ticket = ticket
        unsafe self.handle = handle
        maximumBytes = request.maximumBytes
        unsafe fields = nil
        try configure(options)
        try setFields(request.headers)
        try setContent(request.content)
    }

    /// The handle's address, by which libcurl's messages name the transfer.
    var identity: UInt { unsafe UInt(bitPattern: handle) }

    deinit {
        unsafe curl_easy_cleanup(handle)
        unsafe curl_slist_free_all(fields)
    }

    /// What the transfer came to, from libcurl's verdict.
    func outcome(_ verdict: CURLcode) -> FetchTicket.Outcome {
        if isTooLarge { return .failure(.tooLarge(target.host, maximumBytes)) }
        if isRefusedRepetition { return .failure(.notRepeated(target.host)) }
        guard verdict == CURLE_OK else { return .failure(.transfer(verdict, host: target.host)) }
        let status = unsafe martlet_curl_status(handle)
        guard !(300..<400).contains(status) else { return .failure(.redirected(target.host)) }
        return .success(FetchResponse(status: status, body: body))
    }

    /// libcurl was about to send once more what may be sent once.
    private var isRefusedRepetition: Bool { attempts > 1 && !ticket.request.isRepeatable }

    /// Called each time before the request is sent; `false` ends the transfer.
    fileprivate func beginAttempt() -> Bool {
        attempts += 1
        return !isRefusedRepetition
    }

    /// Takes a piece of the body; `false` ends the transfer.
    fileprivate func takeBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= maximumBytes - body.count else {
            isTooLarge = true
            return false
        }
        unsafe body.append(contentsOf: bytes)
        return true
    }

    /// Counts a header line; `false` ends the transfer.
    fileprivate func takeHead(_ count: Int) -> Bool {
        headCount += count
        isTooLarge = headCount > FetchTransfer.headBytes
        return !isTooLarge
    }

    private func configure(_ options: FetchOptions) throws(FetchFailure) {
        let milliseconds = Int(clamping: max(ticket.request.timeout.wholeMilliseconds, 1))
        let isRepeatable = ticket.request.isRepeatable
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_TIMEOUT_MS, milliseconds), (CURLOPT_CONNECTTIMEOUT_MS, milliseconds),
            (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            // A kept connection may end under a request, and over HTTP/2 a stream may be refused or left behind by a
            // GOAWAY: libcurl sends such a request once more, whatever its method.
            (CURLOPT_HTTP_VERSION, Int(isRepeatable ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)),
            (CURLOPT_FRESH_CONNECT, isRepeatable ? 0 : 1), (CURLOPT_FORBID_REUSE, isRepeatable ? 0 : 1),
            // In the clear it would wait for the first answer to learn that there is no multiplexing.
            (CURLOPT_PIPEWAIT, target.isSecure && isRepeatable ? 1 : 0), (CURLOPT_DISALLOW_USERNAME_IN_URL, 1),
            (CURLOPT_NOPROGRESS, 1),
        ]
        for (option, value) in numbers { try check(unsafe martlet_curl_set_long(handle, option, value)) }
        var texts: [(CURLoption, String)] = [
            (CURLOPT_PROTOCOLS_STR, target.isSecure ? "https" : "http"), (CURLOPT_URL, target.url),
            // Empty is none, whatever the environment says.
            (CURLOPT_PROXY, ""), (CURLOPT_USERAGENT, options.userAgent),
        ]
        if let file = options.caFile { texts.append((CURLOPT_CAINFO, file)) }
        for (option, value) in texts { try check(unsafe martlet_curl_set_text(handle, option, value)) }
        try check(unsafe martlet_curl_set_size(handle, CURLOPT_MAXFILESIZE_LARGE, curl_off_t(maximumBytes)))
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        // What stands above leaves libcurl no reason to repeat; this holds should it find one.
        try check(unsafe martlet_curl_set_gate(handle, askToSend, context))
        try check(unsafe martlet_curl_set_body_sink(handle, receiveBody, context))
        try check(unsafe martlet_curl_set_head_sink(handle, receiveHead, context))
    }

    private func setFields(_ headers: [(name: String, value: String)]) throws(FetchFailure) {
        for (name, value) in headers {
            guard !name.isEmpty, !value.isEmpty, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x3A }),
                value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else { throw .headerInvalid }
            guard let longer = unsafe curl_slist_append(fields, "\(name): \(value)") else { throw .setUpFailed }
            unsafe fields = longer
        }
        if unsafe fields != nil { try check(unsafe martlet_curl_set_list(handle, CURLOPT_HTTPHEADER, fields)) }
    }

    private func setContent(_ content: FetchRequest.Content) throws(FetchFailure) {
        guard case .form(let form) = content else {
            return try check(unsafe martlet_curl_set_long(handle, CURLOPT_HTTPGET, 1))
        }
        let bytes = encodeForm(form)
        try check(unsafe martlet_curl_set_long(handle, CURLOPT_POST, 1))
        try check(unsafe martlet_curl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes.count)))
        try check(unsafe martlet_curl_set_bytes(handle, CURLOPT_COPYPOSTFIELDS, bytes))
    }

    private func check(_ status: CURLcode) throws(FetchFailure) {
        guard status == CURLE_OK else { throw .setUpFailed }
    }
}

/// libcurl's way to hand over a piece of the body; another number than `size * count` ends the transfer.
// The context is the transfer, which outlives its handle: the handle is cleaned up in its deinit.
private func receiveBody(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let start = unsafe start, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<FetchTransfer>.fromOpaque(context).takeUnretainedValue()
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    return unsafe transfer.takeBody(bytes) ? size &* count : -1
}

/// The same for a line of the head.
private func receiveHead(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<FetchTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.takeHead(size &* count) ? size &* count : -1
}

/// libcurl's question, once there is a connection, whether the request may be sent on it.
private func askToSend(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ own: UnsafeMutablePointer<CChar>?,
    _ peerPort: Int32, _ ownPort: Int32
) -> Int32 {
    guard let context = unsafe context else { return CURL_PREREQFUNC_ABORT }
    let transfer = unsafe Unmanaged<FetchTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.beginAttempt() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}
