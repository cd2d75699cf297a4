internal import CCurl
internal import MartletCore
internal import MartletFetch

/// A curl handle that sends one probe after the other; used on the monitor's thread only.
@safe final class ProbeTransfer {
    private static let userAgent = "martlet-health"
    private static let grpcPath = "/grpc.health.v1.Health/Check"

    let handle: UnsafeMutableRawPointer
    /// The target that is probed.
    private(set) var target = 0
    private var request = ProbeRequest(to: nil, host: "")
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var route: UnsafeMutablePointer<curl_slist>?
    private var response = ProbeResponse()

    init?() {
        guard let handle = unsafe curl_easy_init() else { return nil }
        unsafe self.handle = handle
        unsafe (fields, route) = (nil, nil)
    }

    deinit {
        unsafe curl_easy_cleanup(handle)
        unsafe curl_slist_free_all(fields)
        unsafe curl_slist_free_all(route)
    }

    /// The handle's address, which identifies the transfer in libcurl's messages.
    var identity: UInt { unsafe UInt(bitPattern: handle) }

    /// Prepares the handle for a probe.
    /// - Returns: whether libcurl accepts every option.
    func prepare(_ target: Int, _ request: ProbeRequest, keepsConnection: Bool) -> Bool {
        unsafe curl_easy_reset(handle)
        unsafe curl_slist_free_all(fields)
        unsafe curl_slist_free_all(route)
        unsafe (fields, route) = (nil, nil)
        (self.target, self.request) = (target, request)
        response = ProbeResponse(isGRPC: request.isGRPC)
        guard let destination = request.destination else { return false }
        let link = EndpointLink(destination, tls: request.tls, version: request.version)
        return unsafe link.apply(to: handle, route: &route) && setNumbers(keepsConnection && link.keepsConnection)
            && setContent() && setSinks()
    }

    /// What the probe has found out.
    /// - Parameter code: libcurl's result.
    func result(_ code: CURLcode) -> ProbeResult {
        if response.isHeadTooLarge { return .failure("response head larger than 64 KiB") }
        if response.isBodyTooLarge, request.isGRPC { return .failure("response body larger than 64 KiB") }
        // The status decides; the rest of a large body is not waited for.
        guard code == CURLE_OK || response.isBodyTooLarge else { return .failure(reason(code)) }
        if request.version == .http2, unsafe martlet_curl_http_version(handle) != Int(CURL_HTTP_VERSION_2_0) {
            return .failure("no HTTP/2")
        }
        let status = unsafe martlet_curl_status(handle)
        if request.isGRPC { return response.grpcResult(status: status) }
        let isExpected = request.expected.contains { $0.contains(status) }
        return isExpected ? .success("status \(status)") : .failure("status \(status)")
    }

    private func reason(_ code: CURLcode) -> String {
        switch code {
        case CURLE_OPERATION_TIMEDOUT: return "no response within \(request.timeout.wholeMilliseconds) ms"
        case CURLE_COULDNT_CONNECT:
            guard let error = unsafe martlet_curl_connect_error(handle) else { return "no connection" }
            return unsafe String(cString: error).lowercased()
        case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE: return "connection lost"
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR: return "certificate not trusted"
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER: return "TLS handshake failed"
        case CURLE_SSL_CACERT_BADFILE: return "ca_file cannot be read"
        case CURLE_SSL_CERTPROBLEM: return "certificate or key cannot be read"
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: return "no HTTP response"
        default: return unsafe String(cString: curl_easy_strerror(code)).lowercased()
        }
    }
}

// MARK: - Options

extension ProbeTransfer {
    private func setNumbers(_ keepsConnection: Bool) -> Bool {
        let milliseconds = Int(clamping: max(request.timeout.wholeMilliseconds, 1))
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_TIMEOUT_MS, milliseconds), (CURLOPT_CONNECTTIMEOUT_MS, milliseconds), (CURLOPT_BUFFERSIZE, 4096),
            (CURLOPT_FORBID_REUSE, keepsConnection ? 0 : 1),
        ]
        return numbers.allSatisfy { unsafe martlet_curl_set_long(handle, $0, $1) == CURLE_OK }
            && set(CURLOPT_REQUEST_TARGET, request.isGRPC ? Self.grpcPath : request.path)
            && set(CURLOPT_USERAGENT, Self.userAgent)
    }

    private func setContent() -> Bool {
        var lines = ["Host: \(request.host)"]
        if request.isGRPC {
            // A message of length 0: the health of the whole server.
            let message = [UInt8](repeating: 0, count: 5)
            guard unsafe martlet_curl_set_long(handle, CURLOPT_POST, 1) == CURLE_OK,
                unsafe martlet_curl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(message.count))
                    == CURLE_OK,
                unsafe martlet_curl_set_bytes(handle, CURLOPT_COPYPOSTFIELDS, message) == CURLE_OK
            else { return false }
            lines += ["Content-Type: application/grpc", "TE: trailers", "Accept:"]
        }
        for line in lines {
            guard let longer = unsafe curl_slist_append(fields, line) else { return false }
            unsafe fields = longer
        }
        return unsafe martlet_curl_set_list(handle, CURLOPT_HTTPHEADER, fields) == CURLE_OK
    }

    private func setSinks() -> Bool {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        return unsafe martlet_curl_set_body_sink(handle, receiveBody, context) == CURLE_OK
            && martlet_curl_set_head_sink(handle, receiveHead, context) == CURLE_OK
    }

    private func set(_ option: CURLoption, _ text: String) -> Bool {
        unsafe martlet_curl_set_text(handle, option, text) == CURLE_OK
    }

    /// `false` aborts the transfer.
    fileprivate func receive(body bytes: UnsafeRawBufferPointer) -> Bool { unsafe response.addBody(bytes) }

    /// `false` aborts the transfer.
    fileprivate func receive(line bytes: UnsafeRawBufferPointer) -> Bool { unsafe response.addLine(bytes) }
}

/// libcurl's write callback; a return value other than `size * count` aborts the transfer.
// The context is the transfer, which outlives its handle: the handle is cleaned up in its deinit.
private func receiveBody(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let start = unsafe start, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<ProbeTransfer>.fromOpaque(context).takeUnretainedValue()
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    return unsafe transfer.receive(body: bytes) ? size &* count : -1
}

/// libcurl's header callback, which gets trailers too.
private func receiveHead(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let start = unsafe start, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<ProbeTransfer>.fromOpaque(context).takeUnretainedValue()
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    return unsafe transfer.receive(line: bytes) ? size &* count : -1
}
