internal import CCurl
package import MartletCore
package import MartletFetch

/// Where spans are sent.
package struct ExportTarget: Sendable {
    package let url: String
    /// Further fields of the requests; they may have secrets.
    package let fields: [(name: String, value: Secret)]
    package let route: OutboundRoute
    /// For a whole request.
    package var timeout = Duration.seconds(10)

    package init(url: String, fields: [(name: String, value: Secret)] = [], route: OutboundRoute = OutboundRoute()) {
        (self.url, self.fields, self.route) = (url, fields, route)
    }
}

/// A document on its way, with its curl handle; used on the thread of libcurl only.
@safe final class ExportTransfer {
    private static let maximumBytes = 64 * 1024
    private static let longestRetryAfter: Int64 = 3600

    let handle: UnsafeMutableRawPointer
    private let target: ExportTarget
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var body: [UInt8] = []
    private var isTooLarge = false
    private var headRoom = ExportTransfer.maximumBytes

    /// - Returns: `nil` if libcurl does not accept every option.
    init?(_ document: [UInt8], to target: ExportTarget) {
        guard let handle = unsafe curl_easy_init() else { return nil }
        unsafe self.handle = handle
        self.target = target
        unsafe fields = nil
        guard setNumbers(), setTexts(), setFields(), setBody(document), setSinks() else { return nil }
    }

    deinit {
        unsafe curl_easy_cleanup(handle)
        unsafe curl_slist_free_all(fields)
    }

    /// What the collector said.
    /// - Parameter code: libcurl's result.
    func result(_ code: CURLcode) -> ExportResult {
        if isTooLarge { return .rejected("the response is larger than 64 KiB") }
        guard code == CURLE_OK else {
            return .unavailable(unsafe String(cString: curl_easy_strerror(code)).lowercased(), after: nil)
        }
        let seconds = Int64(unsafe martlet_curl_retry_after(handle))
        return ExportResult(
            status: Int(unsafe martlet_curl_status(handle)), body: body,
            retryAfter: seconds > 0 ? .seconds(min(seconds, Self.longestRetryAfter)) : nil)
    }

    /// `false` aborts the transfer.
    fileprivate func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        isTooLarge = bytes.count > Self.maximumBytes - body.count
        if !isTooLarge { unsafe body.append(contentsOf: bytes) }
        return !isTooLarge
    }

    /// `false` aborts the transfer.
    fileprivate func skip(head count: Int) -> Bool {
        headRoom -= count
        isTooLarge = headRoom < 0
        return !isTooLarge
    }

    private func setNumbers() -> Bool {
        let milliseconds = Int(clamping: max(target.timeout.wholeMilliseconds, 1))
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_NOPROGRESS, 1), (CURLOPT_FOLLOWLOCATION, 0),
            (CURLOPT_TIMEOUT_MS, milliseconds), (CURLOPT_CONNECTTIMEOUT_MS, milliseconds),
            (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)), (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS)),
            (CURLOPT_DISALLOW_USERNAME_IN_URL, 1), (CURLOPT_POST, 1),
            // The end of the process does not wait for a name server.
            (CURLOPT_QUICK_EXIT, 1),
        ]
        return numbers.allSatisfy { unsafe martlet_curl_set_long(handle, $0, $1) == CURLE_OK }
    }

    private func setTexts() -> Bool {
        let texts: [(CURLoption, String)] = [
            (CURLOPT_PROTOCOLS_STR, "http,https"), (CURLOPT_URL, target.url),
            (CURLOPT_USERAGENT, "martlet"),
        ]
        guard unsafe target.route.apply(to: handle, isSecure: target.url.hasPrefix("https:")) else { return false }
        return texts.allSatisfy { unsafe martlet_curl_set_text(handle, $0, $1) == CURLE_OK }
    }

    private func setFields() -> Bool {
        var lines = ["Content-Type: application/json", "Expect:"]
        for (name, value) in target.fields {
            lines.append("\(name): \(value.withBytes { String(decoding: $0, as: UTF8.self) })")
        }
        for line in lines {
            guard let longer = unsafe curl_slist_append(fields, line) else { return false }
            unsafe fields = longer
        }
        return unsafe martlet_curl_set_list(handle, CURLOPT_HTTPHEADER, fields) == CURLE_OK
    }

    private func setBody(_ document: [UInt8]) -> Bool {
        unsafe martlet_curl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(document.count)) == CURLE_OK
            && martlet_curl_set_bytes(handle, CURLOPT_COPYPOSTFIELDS, document) == CURLE_OK
    }

    private func setSinks() -> Bool {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        return unsafe martlet_curl_set_body_sink(handle, receiveBody, context) == CURLE_OK
            && martlet_curl_set_head_sink(handle, receiveHead, context) == CURLE_OK
    }
}

/// libcurl's write callback; a return value other than `size * count` aborts the transfer.
// The context is the transfer, which outlives its handle: the handle is cleaned up in its deinit.
private func receiveBody(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let start = unsafe start, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<ExportTransfer>.fromOpaque(context).takeUnretainedValue()
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    return unsafe transfer.append(bytes) ? size &* count : -1
}

/// libcurl's header callback.
private func receiveHead(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<ExportTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.skip(head: size &* count) ? size &* count : -1
}
