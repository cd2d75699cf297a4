internal import CCurl
internal import MartletCore

/// One mail on a connection of its own; used on one thread.
@safe final class SMTPTransfer {
    private let handle: UnsafeMutableRawPointer
    private let server: SMTPServer
    private let content: [UInt8]
    private var sent = 0
    private var recipients: UnsafeMutablePointer<curl_slist>?
    private let isAborted: () -> Bool

    /// - Parameter isAborted: polled about once a second.
    init(
        _ server: SMTPServer, from sender: String, to recipient: String, content: [UInt8],
        isAborted: @escaping () -> Bool
    ) throws(SMTPError) {
        guard MultiHandle.isStarted, let handle = unsafe curl_easy_init() else { throw .setUpFailed }
        unsafe self.handle = handle
        self.server = server
        self.content = content
        self.isAborted = isAborted
        unsafe recipients = nil
        guard let list = unsafe curl_slist_append(nil, "<\(recipient)>") else { throw .setUpFailed }
        unsafe recipients = list
        try setNumbers()
        try setTexts(sender)
        try check(unsafe martlet_curl_set_list(handle, CURLOPT_MAIL_RCPT, recipients))
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        try check(unsafe martlet_curl_set_source(handle, readContent, context))
        try check(unsafe martlet_curl_set_progress(handle, abortIfNeeded, context))
    }

    deinit {
        unsafe curl_easy_cleanup(handle)
        unsafe curl_slist_free_all(recipients)
    }

    /// Connects, authenticates and sends; blocks until the server has accepted the mail.
    func perform() throws(SMTPError) {
        let result = unsafe curl_easy_perform(handle)
        guard result != CURLE_OK else { return }
        throw SMTPError(result, response: unsafe martlet_curl_status(handle), host: server.host)
    }

    private func setNumbers() throws(SMTPError) {
        let milliseconds = Int(clamping: max(server.timeout.wholeMilliseconds, 1))
        let encryption = server.encryption == .none ? CURLUSESSL_NONE : CURLUSESSL_ALL
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_TIMEOUT_MS, milliseconds), (CURLOPT_CONNECTTIMEOUT_MS, milliseconds),
            (CURLOPT_SERVER_RESPONSE_TIMEOUT, max(milliseconds / 1000, 1)), (CURLOPT_SSL_VERIFYPEER, 1),
            (CURLOPT_SSL_VERIFYHOST, 2), (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            (CURLOPT_USE_SSL, Int(encryption.rawValue)), (CURLOPT_UPLOAD, 1), (CURLOPT_NOPROGRESS, 0),
            (CURLOPT_FRESH_CONNECT, 1), (CURLOPT_FORBID_REUSE, 1),
        ]
        for (option, value) in numbers { try check(unsafe martlet_curl_set_long(handle, option, value)) }
        try check(unsafe martlet_curl_set_size(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(content.count)))
    }

    private func setTexts(_ sender: String) throws(SMTPError) {
        var texts: [(CURLoption, String)] = [
            (CURLOPT_PROTOCOLS_STR, server.encryption == .immediate ? "smtps" : "smtp"), (CURLOPT_URL, server.url),
            // The empty string disables proxies from the environment.
            (CURLOPT_PROXY, ""), (CURLOPT_MAIL_FROM, "<\(sender)>"),
        ]
        if let file = server.caFile { texts.append((CURLOPT_CAINFO, file)) }
        if let login = server.login { texts.append((CURLOPT_USERNAME, login.user)) }
        for (option, value) in texts { try check(unsafe martlet_curl_set_text(handle, option, value)) }
        guard let login = server.login else { return }
        // libcurl copies the text, and a `Secret` wipes this one.
        let terminated = Secret(login.password.withBytes { $0 + [0] })
        let status = terminated.withBytes { bytes in
            unsafe martlet_curl_set_bytes(handle, CURLOPT_PASSWORD, bytes)
        }
        try check(status)
    }

    private func check(_ status: CURLcode) throws(SMTPError) {
        guard status == CURLE_OK else { throw .setUpFailed }
    }

    /// Copies the next bytes of the mail.
    fileprivate func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, content.count - sent)
        unsafe buffer.copyBytes(from: content[sent..<(sent + count)])
        sent += count
        return count
    }

    fileprivate var mustAbort: Bool { isAborted() }
}

extension SMTPError {
    /// Maps a libcurl result and the last response of the server.
    init(_ result: CURLcode, response: Int, host: String) {
        let code: ErrorCode
        switch result {
        case CURLE_OPERATION_TIMEDOUT: code = .smtpTimeout
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT: code = .smtpUnreachable
        case CURLE_LOGIN_DENIED: code = .smtpLoginDenied
        case CURLE_USE_SSL_FAILED, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CONNECT_ERROR,
            CURLE_SSL_CACERT_BADFILE:
            code = .smtpNotEncrypted
        case CURLE_ABORTED_BY_CALLBACK: code = .smtpStopped
        case CURLE_SEND_ERROR, CURLE_WEIRD_SERVER_REPLY, CURLE_RECV_ERROR, CURLE_UPLOAD_FAILED:
            code = response >= 400 ? .smtpRejected : .smtpFailed
        default: code = .smtpFailed
        }
        let reason = unsafe String(cString: curl_easy_strerror(result))
        let status = response > 0 ? ", last response \(response)" : ""
        // 5yz is permanent (RFC 5321 §4.2.1); but a rejected login is a matter of the configuration.
        self.init(
            code, "\(host): \(reason)\(status)",
            isPermanent: code == .smtpRejected && (500..<600).contains(response))
    }
}

/// libcurl's read callback.
// The context is the transfer, which outlives its handle: the handle is cleaned up in its deinit.
private func readContent(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let start = unsafe start, let context = unsafe context else { return Int(CURL_READFUNC_ABORT) }
    let transfer = unsafe Unmanaged<SMTPTransfer>.fromOpaque(context).takeUnretainedValue()
    return unsafe transfer.read(into: UnsafeMutableRawBufferPointer(start: start, count: size &* count))
}

/// libcurl's progress callback; a result other than 0 aborts the transfer.
private func abortIfNeeded(
    _ context: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t, _: curl_off_t
) -> Int32 {
    guard let context = unsafe context else { return 1 }
    return unsafe Unmanaged<SMTPTransfer>.fromOpaque(context).takeUnretainedValue().mustAbort ? 1 : 0
}
