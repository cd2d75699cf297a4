internal import CCurl
internal import MartletCore
private import Synchronization

/// A request on its way.
struct FetchTransfer: Transfer {
    typealias Outcome = Result<HTTPCallResponse, HTTPCallError>

    let request: HTTPCall
    let target: FetchTarget
    let route: OutboundRoute
    let userAgent: String
    let cancellation: FetchCancellation
    /// Called once.
    let onEnd: @Sendable (Outcome) -> Void

    var wasCancelled: Bool { cancellation.isCancelled }

    func end(_ result: CURLcode, of handle: EasyHandle) { onEnd(outcome(result, of: handle)) }

    func fail(_ error: HTTPCallError) { onEnd(.failure(error)) }

    private func outcome(_ result: CURLcode, of handle: EasyHandle) -> Outcome {
        let response = handle.response
        if response.isHeadTooLarge || response.isBodyTooLarge {
            return .failure(.tooLarge(target.host, request.maximumBytes))
        }
        if handle.wasRepeated { return .failure(.notRetried(target.host)) }
        guard result == CURLE_OK else {
            if let reason = route.failure(result, handle), target.isSecure {
                return .failure(.lostAtProxy(target.host, reason))
            }
            return .failure(.transfer(result, host: target.host))
        }
        let status = handle.status
        guard !(300..<400).contains(status) else { return .failure(.redirected(target.host)) }
        let pause = handle.retryAfter(atMost: .seconds(86_400))
        return .success(HTTPCallResponse(status: status, body: response.body, retryAfter: pause))
    }

    func makeHandle() throws(HTTPCallError) -> EasyHandle {
        let (keepsBody, isRepeatable) = (!request.discardsBody, request.isRepeatable)
        let limit = keepsBody ? request.maximumBytes : .max
        let handle = try EasyHandle(
            timeout: request.timeout, response: ResponseIntake(bodyLimit: limit, keepsBody: keepsBody),
            isRepeatable: isRepeatable)
        try route.apply(to: handle, url: target.url, isSecure: target.isSecure, userAgent: userAgent)
        try handle.set([
            // libcurl retries any method if a reused connection closes, or if an HTTP/2 stream is refused or excluded
            // by a GOAWAY. These options should prevent that; the handle enforces it.
            (CURLOPT_HTTP_VERSION, Int(isRepeatable ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)),
            (CURLOPT_FRESH_CONNECT, isRepeatable ? 0 : 1), (CURLOPT_FORBID_REUSE, isRepeatable ? 0 : 1),
            // Over plaintext it would wait for the first response to learn that multiplexing is unavailable.
            (CURLOPT_PIPEWAIT, target.isSecure && isRepeatable ? 1 : 0),
        ])
        if let socket = request.socket { try handle.set([(CURLOPT_UNIX_SOCKET_PATH, socket)]) }
        if keepsBody { try handle.set(CURLOPT_MAXFILESIZE_LARGE, size: limit) }
        try setContent(of: handle)
        return handle
    }

    private func setContent(of handle: EasyHandle) throws(HTTPCallError) {
        var headers = request.headers
        switch request.content {
        case .none: try handle.set([(CURLOPT_HTTPGET, 1)])
        case .form(let form): try handle.setBody(encodeForm(form))
        case .body(let body, let type):
            headers.append((name: "Content-Type", value: type))
            try handle.setBody(body)
        }
        for (name, value) in headers {
            guard !name.isEmpty, !value.isEmpty, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x3A }),
                value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else { throw .headerInvalid }
        }
        try handle.set(CURLOPT_HTTPHEADER, lines: headers.map { "\($0.name): \($0.value)" })
    }
}

/// The word of a task that it does not want its request any more.
final class FetchCancellation: Sendable {
    private let flag = Atomic(false)

    var isCancelled: Bool { flag.load(ordering: .acquiring) }

    func cancel() { flag.store(true, ordering: .releasing) }
}
