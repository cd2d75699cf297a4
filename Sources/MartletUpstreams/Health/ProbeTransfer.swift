internal import CCurl
internal import MartletCore
internal import MartletFetch

/// A probe on its way.
struct ProbeTransfer: Transfer {
    private static let userAgent = "martlet-health"
    private static let grpcPath = "/grpc.health.v1.Health/Check"

    let request: ProbeRequest
    let keepsConnection: Bool
    /// Called once, unless the thread ends before.
    let onEnd: @Sendable (ProbeResult) -> Void

    func end(_ code: CURLcode, of handle: EasyHandle) { onEnd(result(code, of: handle)) }

    func fail(_ error: HTTPCallError) {
        if error.code != .fetchStopped { onEnd(.failure(error.message)) }
    }

    /// What the probe has found out.
    private func result(_ code: CURLcode, of handle: EasyHandle) -> ProbeResult {
        let response = handle.response
        if response.isHeadTooLarge { return .failure("response head larger than 64 KiB") }
        if response.isBodyTooLarge, request.isGRPC { return .failure("response body larger than 64 KiB") }
        // The status decides; the rest of a large body is not waited for.
        guard code == CURLE_OK || response.isBodyTooLarge else { return .failure(reason(code, of: handle)) }
        if request.version == .http2, !handle.isHTTP2 { return .failure("no HTTP/2") }
        let status = handle.status
        if request.isGRPC {
            return GRPCHealth.result(status: status, head: response.head, body: response.body)
        }
        let isExpected = request.expected.contains { $0.contains(status) }
        return isExpected ? .success("status \(status)") : .failure("status \(status)")
    }

    private func reason(_ code: CURLcode, of handle: EasyHandle) -> String {
        switch code {
        case CURLE_OPERATION_TIMEDOUT: return "no response within \(request.timeout.wholeMilliseconds) ms"
        case CURLE_COULDNT_CONNECT:
            return handle.connectError?.lowercased() ?? "no connection"
        case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE: return "connection lost"
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR: return "certificate not trusted"
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER: return "TLS handshake failed"
        case CURLE_SSL_CACERT_BADFILE: return "ca_file cannot be read"
        case CURLE_SSL_CERTPROBLEM: return "certificate or key cannot be read"
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: return "no HTTP response"
        default: return code.reason.lowercased()
        }
    }

    func makeHandle() throws(HTTPCallError) -> EasyHandle {
        guard let destination = request.destination else {
            throw HTTPCallError(code: .fetchUnreachable, message: "the host name has no address")
        }
        let handle = try EasyHandle(
            timeout: request.timeout,
            response: ResponseIntake(bodyLimit: 64 * 1024, keepsHead: request.isGRPC, keepsBody: request.isGRPC))
        try EndpointLink(destination, tls: request.tls, version: request.version).apply(to: handle)
        try handle.set([(CURLOPT_BUFFERSIZE, 4096)])
        if !keepsConnection { try handle.set([(CURLOPT_FORBID_REUSE, 1)]) }
        try handle.set([
            (CURLOPT_REQUEST_TARGET, request.isGRPC ? Self.grpcPath : request.path),
            (CURLOPT_USERAGENT, Self.userAgent),
        ])
        var lines = ["Host: \(request.host)"]
        if request.isGRPC {
            // A message of length 0: the health of the whole server.
            try handle.setBody([UInt8](repeating: 0, count: 5))
            lines += ["Content-Type: application/grpc", "TE: trailers", "Accept:"]
        }
        try handle.set(CURLOPT_HTTPHEADER, lines: lines)
        return handle
    }
}
