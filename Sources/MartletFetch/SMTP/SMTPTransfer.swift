internal import CCurl
internal import MartletCore

/// One mail on a connection of its own; used on one thread.
@safe final class SMTPTransfer {
    private let handle: EasyHandle
    private let server: SMTPServer
    private let content: [UInt8]
    private var sent = 0
    private let isAborted: () -> Bool

    /// - Parameter isAborted: polled about once a second.
    init(
        _ server: SMTPServer, from sender: String, to recipient: String, content: [UInt8],
        isAborted: @escaping () -> Bool
    ) throws(SMTPError) {
        self.server = server
        self.content = content
        self.isAborted = isAborted
        do throws(HTTPCallError) {
            let unlimited = ResponseIntake(headLimit: .max, bodyLimit: .max, keepsBody: false)
            handle = try EasyHandle(timeout: server.timeout, response: unlimited)
            try configure(sender)
            try handle.set(CURLOPT_MAIL_RCPT, lines: ["<\(recipient)>"])
            let context = unsafe Unmanaged.passUnretained(self).toOpaque()
            try handle.check(unsafe martlet_curl_set_source(handle.pointer, readContent, context))
            try handle.check(unsafe martlet_curl_set_progress(handle.pointer, abortIfNeeded, context))
        } catch {
            throw .setUpFailed
        }
    }

    /// Connects, authenticates and sends; blocks until the server has accepted the mail.
    func perform() throws(SMTPError) {
        let result = unsafe curl_easy_perform(handle.pointer)
        guard result != CURLE_OK else { return }
        throw SMTPError(result, response: handle.status, host: server.host)
    }

    private func configure(_ sender: String) throws(HTTPCallError) {
        let encryption = server.encryption == .none ? CURLUSESSL_NONE : CURLUSESSL_ALL
        try handle.set([
            (CURLOPT_SERVER_RESPONSE_TIMEOUT, Int(clamping: max(server.timeout.wholeSeconds, 1))),
            (CURLOPT_USE_SSL, Int(encryption.rawValue)), (CURLOPT_UPLOAD, 1), (CURLOPT_NOPROGRESS, 0),
            (CURLOPT_FRESH_CONNECT, 1), (CURLOPT_FORBID_REUSE, 1),
        ])
        try handle.set(CURLOPT_INFILESIZE_LARGE, size: content.count)
        try handle.set([
            (CURLOPT_PROTOCOLS_STR, server.encryption == .immediate ? "smtps" : "smtp"), (CURLOPT_URL, server.url),
            // The empty string disables proxies from the environment.
            (CURLOPT_PROXY, ""), (CURLOPT_MAIL_FROM, "<\(sender)>"),
        ])
        if let file = server.caFile { try handle.set([(CURLOPT_CAINFO, file)]) }
        guard let login = server.login else { return }
        try handle.set([(CURLOPT_USERNAME, login.user)])
        // libcurl copies the text, and a `Secret` wipes this one.
        let terminated = Secret(login.password.withBytes { $0 + [0] })
        let status = terminated.withBytes { bytes in
            unsafe martlet_curl_set_bytes(handle.pointer, CURLOPT_PASSWORD, bytes)
        }
        try handle.check(status)
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
        let status = response > 0 ? ", last response \(response)" : ""
        // 5yz is permanent (RFC 5321 §4.2.1); but a rejected login is a matter of the configuration.
        self.init(
            code, "\(host): \(result.reason)\(status)",
            isPermanent: code == .smtpRejected && (500..<600).contains(response))
    }
}

/// libcurl's read callback.
// The context is the transfer, which outlives its handle.
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
