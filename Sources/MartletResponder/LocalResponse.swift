package import MartletCore

/// The response to a local request.
package struct LocalResponse: Sendable {
    package var status: Int
    package var fields: [(name: String, value: String)]
    package var body: [UInt8]
    /// Why the request was rejected; the gateway writes the response itself and logs the reason.
    package var failure: Failure?
    /// The reason for logs and metrics; `nil` is `ok`.
    package var reason: ErrorCode?
    /// The caller for the access log, where the handler knows it.
    package var caller: NamedCaller?
    /// The provider of the caller, or that of a sign-in, for the access log.
    package var provider: String?
    /// The body of a response that comes in parts after ``body``, as long as the client stays; HTTP/1.1 only.
    package var parts: AsyncStream<[UInt8]>?
    /// Whether the connection is closed after the response; HTTP/1.1 only.
    package var closes = false
    /// Whether the connection is closed, or the stream reset, instead of a response: a fault that a simulator injects.
    package var isAborted = false

    package init(status: Int, fields: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// An error response.
    package init(refusing failure: Failure) {
        self.init(status: failure.status, fields: [], body: [])
        self.failure = failure
    }

    /// No response: the connection is closed.
    package static var aborted: LocalResponse {
        var response = LocalResponse(status: 499, fields: [], body: [])
        response.isAborted = true
        return response
    }

    /// The response to a health check while an event loop or the threads of tasks stand still.
    package static let stalled = LocalResponse.text(503, "text/plain; charset=utf-8", "stalled\n")

    /// A response with a media type and a text.
    package static func text(_ status: Int, _ mediaType: String, _ text: String) -> LocalResponse {
        LocalResponse(
            status: status, fields: [("Content-Type", mediaType), ("Cache-Control", "no-store")], body: Array(text.utf8)
        )
    }
}
