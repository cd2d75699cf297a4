package import CCurl
package import MartletCore

/// libcurl's easy handle: the options of one transfer, and what arrives of the response; used on one thread.
///
/// It follows no redirect, verifies certificates, and takes nothing from the environment once it has a route or a link.
@safe package final class EasyHandle {
    /// Whether libcurl is initialized; done once per process.
    static let isStarted = martlet_curl_start() == CURLE_OK

    let pointer: UnsafeMutableRawPointer
    /// Lists that options refer to.
    private var lists: [UnsafeMutablePointer<curl_slist>] = unsafe []
    package private(set) var response: ResponseIntake
    private let isRepeatable: Bool
    /// How often libcurl has tried to send the request.
    private var attempts = 0

    /// - Parameters:
    ///   - timeout: of the whole transfer.
    ///   - connectTimeout: that of the whole transfer, unless stated.
    ///   - response: what is read of the response, and kept.
    ///   - isRepeatable: whether libcurl may send the request again where it has lost the connection.
    package init(
        timeout: Duration, connectTimeout: Duration? = nil, response: ResponseIntake, isRepeatable: Bool = true
    ) throws(HTTPCallError) {
        guard EasyHandle.isStarted, let pointer = unsafe curl_easy_init() else { throw .setUpFailed }
        unsafe self.pointer = pointer
        (self.response, self.isRepeatable) = (response, isRepeatable)
        try set([
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_NOPROGRESS, 1), (CURLOPT_FOLLOWLOCATION, 0),
            (CURLOPT_TIMEOUT_MS, Self.milliseconds(timeout)),
            (CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(connectTimeout ?? timeout)), (CURLOPT_SSL_VERIFYPEER, 1),
            (CURLOPT_SSL_VERIFYHOST, 2), (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            // A file of authorities may be replaced.
            (CURLOPT_CA_CACHE_TIMEOUT, 60),
        ])
        try check(unsafe martlet_curl_set_gate(pointer, allowSending, context))
        try check(unsafe martlet_curl_set_body_sink(pointer, receiveBody, context))
        try check(unsafe martlet_curl_set_head_sink(pointer, receiveHead, context))
    }

    deinit {
        unsafe curl_easy_cleanup(pointer)
        while let list = unsafe lists.popLast() { unsafe curl_slist_free_all(list) }
    }

    private var context: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }

    private static func milliseconds(_ duration: Duration) -> Int { Int(clamping: max(duration.wholeMilliseconds, 1)) }

    /// Called before each attempt to send the request; `false` aborts the transfer.
    fileprivate func beginAttempt() -> Bool {
        attempts += 1
        return !wasRepeated
    }

    /// `false` aborts the transfer.
    fileprivate func receive(head bytes: UnsafeRawBufferPointer) -> Bool { unsafe response.add(head: bytes) }

    /// `false` aborts the transfer.
    fileprivate func receive(body bytes: UnsafeRawBufferPointer) -> Bool { unsafe response.add(body: bytes) }
}

// MARK: - Options

extension EasyHandle {
    /// Sets options that are numbers.
    package func set(_ numbers: [(CURLoption, Int)]) throws(HTTPCallError) {
        for (option, value) in numbers { try check(unsafe martlet_curl_set_long(pointer, option, value)) }
    }

    /// Sets options that are texts, which libcurl copies.
    package func set(_ texts: [(CURLoption, String)]) throws(HTTPCallError) {
        for (option, value) in texts { try check(unsafe martlet_curl_set_text(pointer, option, value)) }
    }

    /// Sets an option to a text.
    /// - Parameter text: ends with a zero byte.
    package func set(_ option: CURLoption, _ text: [CChar]) throws(HTTPCallError) {
        try check(unsafe martlet_curl_set_text(pointer, option, text))
    }

    /// Sets an option to a list; an empty one changes nothing.
    /// - Parameter lines: each ends with a zero byte.
    package func set(_ option: CURLoption, lines: [[CChar]]) throws(HTTPCallError) {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines {
            guard let longer = unsafe curl_slist_append(list, line) else {
                unsafe curl_slist_free_all(list)
                throw .setUpFailed
            }
            unsafe list = longer
        }
        guard let list = unsafe list else { return }
        unsafe lists.append(list)
        try check(unsafe martlet_curl_set_list(pointer, option, list))
    }

    /// The same with texts.
    package func set(_ option: CURLoption, lines: [String]) throws(HTTPCallError) {
        try set(option, lines: lines.map { Array($0.utf8CString) })
    }

    /// Makes it a POST of these bytes, which libcurl copies.
    package func setBody(_ bytes: [UInt8]) throws(HTTPCallError) {
        try set([(CURLOPT_POST, 1)])
        try set(CURLOPT_POSTFIELDSIZE_LARGE, size: bytes.count)
        try check(unsafe martlet_curl_set_bytes(pointer, CURLOPT_COPYPOSTFIELDS, bytes.isEmpty ? [0] : bytes))
    }

    func set(_ option: CURLoption, size: Int) throws(HTTPCallError) {
        try check(unsafe martlet_curl_set_size(pointer, option, curl_off_t(size)))
    }

    func check(_ status: CURLcode) throws(HTTPCallError) {
        guard status == CURLE_OK else { throw .setUpFailed }
    }
}

// MARK: - Results

extension EasyHandle {
    /// Of the last response; 0 without one.
    package var status: Int { unsafe martlet_curl_status(pointer) }

    /// Whether libcurl tried to send a request again that must not be.
    var wasRepeated: Bool { attempts > 1 && !isRepeatable }

    package var isHTTP2: Bool { unsafe martlet_curl_http_version(pointer) == Int(CURL_HTTP_VERSION_2_0) }

    /// Why the last connect failed.
    package var connectError: String? { unsafe martlet_curl_connect_error(pointer).map { unsafe String(cString: $0) } }

    /// How long the server asked to wait; libcurl parses both forms of the field.
    package func retryAfter(atMost limit: Duration) -> Duration? {
        let seconds = Int64(unsafe martlet_curl_retry_after(pointer))
        return seconds > 0 ? min(.seconds(seconds), limit) : nil
    }
}

extension CURLcode {
    /// libcurl's words for it.
    package var reason: String { unsafe String(cString: curl_easy_strerror(self)) }
}

// MARK: - Callbacks

// The context is the handle's owner, which outlives it: the handle is cleaned up in its deinit.

/// libcurl's write callback; a return value other than `size * count` aborts the transfer.
private func receiveBody(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let start = unsafe start, let context = unsafe context else { return 0 }
    let handle = unsafe Unmanaged<EasyHandle>.fromOpaque(context).takeUnretainedValue()
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    return unsafe handle.receive(body: bytes) ? size &* count : -1
}

/// libcurl's header callback, which gets trailers too.
private func receiveHead(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let start = unsafe start, let context = unsafe context else { return 0 }
    let handle = unsafe Unmanaged<EasyHandle>.fromOpaque(context).takeUnretainedValue()
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    return unsafe handle.receive(head: bytes) ? size &* count : -1
}

/// libcurl's prerequest callback: decides whether the request may be sent on the connection.
private func allowSending(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ own: UnsafeMutablePointer<CChar>?,
    _ peerPort: Int32, _ ownPort: Int32
) -> Int32 {
    guard let context = unsafe context else { return CURL_PREREQFUNC_ABORT }
    let handle = unsafe Unmanaged<EasyHandle>.fromOpaque(context).takeUnretainedValue()
    return handle.beginAttempt() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}
