internal import MartletResponder

/// An error that a test injects into a call of Apple's endpoints.
struct AppleFault: Sendable {
    /// The response to send instead.
    enum Response: Sendable {
        case error(AppleAPIError)
        case raw(status: Int, type: String, body: String)
        /// The connection is closed without a response.
        case disconnect
    }

    let delay: Duration
    /// `nil` for the normal response.
    let response: Response?
    /// Whether the call is processed before: codes are used up, tokens are revoked, and only the response is lost.
    let isProcessed: Bool
    /// The `Retry-After` of the response, in seconds.
    private let retryAfter: Int64?

    static let members = [
        "delay", "error", "error_description", "status", "body", "content_type", "close", "processed", "retry_after",
    ]
    /// In milliseconds; below the time after which a local handler counts as failed.
    private static let maximumDelay: Int64 = 9000
    private static let maximumCode = 64

    /// Reads an error from a request.
    /// - Returns: `nil` if none of `delay`, `error`, `status`, `body` and `close` is there.
    init?(_ input: SimulatorRequest) throws(RequestError) {
        delay = .milliseconds(try input.number("delay", in: 0...Self.maximumDelay, unit: " of milliseconds") ?? 0)
        isProcessed = try input.flag("processed") ?? false
        retryAfter = try input.number("retry_after", in: 0...3600, unit: " of seconds")
        let status = try input.number("status", in: 200...599).map { Int($0) }
        let body = try input.text("body")
        let type = try input.text("content_type")
        let text = try input.text("error_description")
        if try input.flag("close") ?? false {
            response = .disconnect
        } else if let code = try input.text("error") {
            guard (1...Self.maximumCode).contains(code.utf8.count) else {
                throw RequestError("'error' is empty or too long")
            }
            response = .error(AppleAPIError(status: status ?? 400, code: code, text: text))
        } else if status != nil || body != nil {
            let type = type ?? "text/html;charset=UTF-8"
            guard type.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
                throw RequestError("'content_type' is not ASCII text")
            }
            response = .raw(status: status ?? 200, type: type, body: body ?? "")
        } else {
            response = nil
            guard delay > .zero else { return nil }
        }
    }

    /// What the log and the client get; `nil` for the normal response.
    var injected: (outcome: String, response: LocalResponse)? {
        switch response {
        case .error(let error):
            return (error.code, delaying(error.response))
        case .raw(let status, let type, let body):
            let fields = body.isEmpty ? [] : [(name: "Content-Type", value: type)]
            return ("injected", delaying(LocalResponse(status: status, fields: fields, body: Array(body.utf8))))
        case .disconnect: return ("closed", .aborted)
        case nil: return nil
        }
    }

    private func delaying(_ response: LocalResponse) -> LocalResponse {
        guard let retryAfter else { return response }
        var response = response
        response.fields.append((name: "Retry-After", value: String(retryAfter)))
        return response
    }
}
