internal import CCurl
internal import MartletCore
internal import MartletFetch

/// A copy that waits for the thread.
struct PendingMirror: PendingTransfer {
    let request: MirrorRequest
    let endpoint: MirrorTarget.Endpoint
    let connectTimeout: Duration
    let timeout: Duration
    /// Called once with whether the upstream has responded.
    let onEnd: @Sendable (Bool) -> Void

    var wasCancelled: Bool { false }

    func makeTransfer() throws(HTTPCallError) -> any RunningTransfer { try MirrorTransfer(self) }

    func fail(_ error: HTTPCallError) { onEnd(false) }
}

/// A copy in progress with its curl handle; used on the thread only.
@safe final class MirrorTransfer: RunningTransfer {
    /// How much is read of a response.
    private static let maximumBytes = 1024 * 1024
    private static let maximumHeadBytes = 64 * 1024

    let handle: UnsafeMutableRawPointer
    private let isRepeatable: Bool
    private let onEnd: @Sendable (Bool) -> Void
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var route: UnsafeMutablePointer<curl_slist>?
    /// Bytes that are still read of the response.
    private var headRoom = MirrorTransfer.maximumHeadBytes
    private var bodyRoom = MirrorTransfer.maximumBytes
    private var attempts = 0

    init(_ pending: PendingMirror) throws(HTTPCallError) {
        guard let head = MirrorHead(pending.request, host: pending.request.host ?? Array(pending.endpoint.host.utf8)),
            let handle = unsafe curl_easy_init()
        else { throw MirrorTransfer.setUpFailed }
        unsafe self.handle = handle
        isRepeatable = pending.request.isRepeatable
        onEnd = pending.onEnd
        unsafe (fields, route) = (nil, nil)
        guard unsafe pending.endpoint.link.apply(to: handle, route: &route),
            setTimes(pending), setHead(head, hasBody: pending.request.body != nil),
            setBody(pending.request.body, isHead: head.isHead), setSinks()
        else { throw MirrorTransfer.setUpFailed }
    }

    deinit {
        unsafe curl_easy_cleanup(handle)
        unsafe curl_slist_free_all(fields)
        unsafe curl_slist_free_all(route)
    }

    private static let setUpFailed = HTTPCallError(code: .fetchFailed, message: "libcurl setup failed")

    var wasCancelled: Bool { false }

    /// Whatever it is, a response counts; the rest of a long one is not waited for.
    func end(_ result: CURLcode) { onEnd(unsafe martlet_curl_status(handle) > 0) }

    func fail(_ error: HTTPCallError) { onEnd(false) }

    /// `false` aborts the transfer.
    fileprivate func beginAttempt() -> Bool {
        attempts += 1
        // libcurl repeats what it has sent over a connection that turns out to be closed.
        return attempts == 1 || isRepeatable
    }

    /// `false` aborts the transfer.
    fileprivate func skip(body count: Int) -> Bool {
        bodyRoom -= count
        return bodyRoom >= 0
    }

    /// `false` aborts the transfer.
    fileprivate func skip(head count: Int) -> Bool {
        headRoom -= count
        return headRoom >= 0
    }

    private func setTimes(_ pending: PendingMirror) -> Bool {
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_TIMEOUT_MS, Int(clamping: max(pending.timeout.wholeMilliseconds, 1))),
            (CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: max(pending.connectTimeout.wholeMilliseconds, 1))),
        ]
        return numbers.allSatisfy { unsafe martlet_curl_set_long(handle, $0, $1) == CURLE_OK }
    }

    private func setHead(_ head: MirrorHead, hasBody: Bool) -> Bool {
        for line in head.lines {
            guard let longer = unsafe curl_slist_append(fields, line) else { return false }
            unsafe fields = longer
        }
        // The order matters: a method of one's own stands for that of the kind of transfer.
        let kind = head.isHead ? CURLOPT_NOBODY : hasBody ? CURLOPT_POST : CURLOPT_HTTPGET
        return unsafe martlet_curl_set_long(handle, kind, 1) == CURLE_OK
            && martlet_curl_set_text(handle, CURLOPT_CUSTOMREQUEST, head.method) == CURLE_OK
            && martlet_curl_set_text(handle, CURLOPT_REQUEST_TARGET, head.target) == CURLE_OK
            && martlet_curl_set_list(handle, CURLOPT_HTTPHEADER, fields) == CURLE_OK
    }

    /// A body of HEAD has no meaning, and is left out.
    private func setBody(_ body: [UInt8]?, isHead: Bool) -> Bool {
        guard let body, !isHead else { return true }
        return unsafe martlet_curl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count)) == CURLE_OK
            && martlet_curl_set_bytes(handle, CURLOPT_COPYPOSTFIELDS, body.isEmpty ? [0] : body) == CURLE_OK
    }

    private func setSinks() -> Bool {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        return unsafe martlet_curl_set_gate(handle, allowSending, context) == CURLE_OK
            && martlet_curl_set_body_sink(handle, skipBody, context) == CURLE_OK
            && martlet_curl_set_head_sink(handle, skipHead, context) == CURLE_OK
    }
}

/// libcurl's write callback; a return value other than `size * count` aborts the transfer.
// The context is the transfer, which outlives its handle: the handle is cleaned up in its deinit.
private func skipBody(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context = unsafe context else { return -1 }
    let transfer = unsafe Unmanaged<MirrorTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.skip(body: size &* count) ? size &* count : -1
}

/// libcurl's header callback, which gets trailers too.
private func skipHead(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context = unsafe context else { return -1 }
    let transfer = unsafe Unmanaged<MirrorTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.skip(head: size &* count) ? size &* count : -1
}

/// libcurl's prerequest callback: decides whether the request may be sent on the connection.
private func allowSending(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ own: UnsafeMutablePointer<CChar>?,
    _ peerPort: Int32, _ ownPort: Int32
) -> Int32 {
    guard let context = unsafe context else { return CURL_PREREQFUNC_ABORT }
    let transfer = unsafe Unmanaged<MirrorTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.beginAttempt() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}
