internal import MartletCore
internal import MartletProvider

/// Calls WeChat, parses the responses and counts the results; never sends a code twice.
struct WeChatClient: Sendable {
    /// One of WeChat's endpoints; the raw value is its name in logs.
    enum Call: String, Sendable {
        case exchange, userinfo, jscode2session
        case accountToken = "stable_token"
        case phoneNumber = "getuserphonenumber"

        /// A code is valid for one call, and WeChat treats a second one as theft.
        var isRepeatable: Bool { self == .userinfo || self == .accountToken }

        /// Whether the call has a token instead of the app's secret.
        var hasToken: Bool { self == .userinfo || self == .phoneNumber }
    }

    /// With less time left, no call is made.
    private static let minimumTime = Duration.milliseconds(100)

    private var http: any HTTPCalling
    private let clock: Clock
    private let logger: Logger
    private let timeout: Duration
    let metrics: WeChatMetrics

    init(context: ProviderContext, timeout: Duration, metrics: WeChatMetrics) {
        http = context.http
        clock = context.clock
        logger = context.logger
        self.timeout = timeout
        self.metrics = metrics
    }

    /// Whether a call may still be made before a deadline.
    func hasTime(until deadline: MonotonicTime) -> Bool { callTimeout(until: deadline) >= Self.minimumTime }

    /// Waits for a slot and returns a client that can make its calls immediately, one after the other.
    /// - Throws: `wechat.overloaded` when too many calls are in flight.
    func reserved(until deadline: MonotonicTime) async throws(AuthenticationError) -> WeChatClient {
        let left = deadline.since(clock.monotonicTime)
        var client = self
        do throws(HTTPCallError) {
            // The wait must leave enough time for a call.
            client.http = try await http.reserve(within: max(left - timeout, left / 2))
        } catch {
            logger.warning("no capacity for a call to wechat", ("code", error.code.rawValue))
            throw .overloaded(error)
        }
        return client
    }

    /// Makes one call.
    /// - Parameters:
    ///   - call: the endpoint.
    ///   - url: contains secrets; never logged.
    ///   - content: the body; a GET without one.
    ///   - app: the entry of `apps`, for logs.
    ///   - read: extracts a value from the response.
    /// - Throws: the meaning of WeChat's error code, or `unavailable` when there is no valid response.
    func send<Value>(
        _ call: Call, _ url: String, content: HTTPCall.Content = .none, for app: String, until deadline: MonotonicTime,
        _ read: (WeChatResponse) throws(WeChatResponse.ParseError) -> Value
    ) async throws(AuthenticationError) -> Value {
        guard hasTime(until: deadline) else { throw .noTime }
        let response: HTTPCallResponse
        do throws(HTTPCallError) {
            response = try await http.send(
                HTTPCall(
                    url, content: content, timeout: callTimeout(until: deadline),
                    maximumBytes: WeChatResponse.maximumBytes,
                    isRepeatable: call.isRepeatable))
        } catch {
            logger.warning("wechat unreachable", ("call", call.rawValue), ("app", app), ("code", error.code.rawValue))
            metrics.record(.failed("wechat.upstream_unreachable"), at: clock.monotonicTime)
            throw .unavailable("wechat.upstream_unreachable", cause: error)
        }
        return try parse(response, call, app, read)
    }

    private func parse<Value>(
        _ response: HTTPCallResponse, _ call: Call, _ app: String,
        _ read: (WeChatResponse) throws(WeChatResponse.ParseError) -> Value
    ) throws(AuthenticationError) -> Value {
        guard response.status == 200 else {
            logger.warning(
                "wechat returned an unexpected status", ("call", call.rawValue), ("app", app),
                ("status", String(response.status)))
            metrics.record(.failed("wechat.upstream_bad_status"), at: clock.monotonicTime)
            throw .unavailable("wechat.upstream_bad_status")
        }
        let apiError: WeChatResponse.APIError
        do throws(WeChatResponse.ParseError) {
            let body = try WeChatResponse(response.body)
            guard let found = try body.apiError() else {
                let value = try read(body)
                metrics.record(.succeeded, at: clock.monotonicTime)
                return value
            }
            apiError = found
        } catch {
            logger.warning("wechat's response is invalid", ("call", call.rawValue), ("app", app))
            metrics.record(.failed("wechat.upstream_bad_answer"), at: clock.monotonicTime)
            throw .unavailable("wechat.upstream_bad_answer")
        }
        throw authenticationError(apiError, call, app)
    }

    private func authenticationError(
        _ apiError: WeChatResponse.APIError, _ call: Call, _ app: String
    ) -> AuthenticationError {
        let meaning = WeChatError.of(apiError.code, at: call)
        let error = meaning.error
        let line = logger.with(
            ("call", call.rawValue), ("app", app), ("errcode", apiError.code.description),
            ("rid", apiError.requestID ?? "-"), ("code", error.code.rawValue))
        switch meaning.kind {
        case .rejected, .denied: line.info("wechat returned an error")
        case .configuration, .invalidCall: line.error("wechat returned an error")
        case .busy, .limited, .token, .unknown: line.warning("wechat returned an error")
        }
        metrics.record(.error(meaning.kind, error.code), at: clock.monotonicTime)
        return error
    }

    private func callTimeout(until deadline: MonotonicTime) -> Duration {
        min(timeout, deadline.since(clock.monotonicTime))
    }
}
