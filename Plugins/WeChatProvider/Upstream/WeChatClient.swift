internal import MartletCore
internal import MartletProvider

/// Asks WeChat, judges what kind of answer comes, and keeps the figures.
///
/// No code is ever sent twice.
struct WeChatClient: Sendable {
    /// One of WeChat's endpoints, by its name in logs.
    enum Call: String, Sendable {
        case exchange, userinfo, jscode2session

        /// A code is good for one call, and WeChat takes a second one for a theft.
        var isRepeatable: Bool { self == .userinfo }
    }

    /// With less time than this left, nothing is sent.
    private static let shortest = Duration.milliseconds(100)

    private var http: any HTTPCalling
    private let clock: Clock
    private let logger: Logger
    private let timeout: Duration
    let figures: WeChatFigures

    init(context: ProviderContext, timeout: Duration, figures: WeChatFigures) {
        http = context.http
        clock = context.clock
        logger = context.logger
        self.timeout = timeout
        self.figures = figures
    }

    /// Whether a call may still be made before a deadline.
    func hasTime(until deadline: MonotonicTime) -> Bool { patience(until: deadline) >= Self.shortest }

    /// The same with the right to make its calls at once, one after the other; waits for that.
    /// - Throws: `wechat.overloaded` when too many calls are under way.
    func reserved(until deadline: MonotonicTime) async throws(AuthenticationError) -> WeChatClient {
        let left = deadline.since(clock.monotonicTime)
        var client = self
        do throws(HTTPCallError) {
            // What is left afterwards is to be enough for a call.
            client.http = try await http.reserve(within: max(left - timeout, left / 2))
        } catch {
            logger.warning("a code cannot be sent yet", ("code", error.code.rawValue))
            throw .overloaded(error)
        }
        return client
    }

    /// Makes one call.
    /// - Parameters:
    ///   - call: which endpoint it is.
    ///   - url: what is asked; never logged.
    ///   - app: the entry of `apps`, for logs.
    ///   - read: takes what is needed out of the answer.
    /// - Throws: what WeChat's error code means, or `unavailable` when there is no answer that can be read.
    func ask<Found>(
        _ call: Call, _ url: String, for app: String, until deadline: MonotonicTime,
        _ read: (WeChatAnswer) throws(WeChatAnswer.Unreadable) -> Found
    ) async throws(AuthenticationError) -> Found {
        guard hasTime(until: deadline) else { throw .noTime }
        let answer: HTTPAnswer
        do throws(HTTPCallError) {
            answer = try await http.send(
                HTTPCall(
                    url, timeout: patience(until: deadline), maximumBytes: WeChatAnswer.maximumBytes,
                    isRepeatable: call.isRepeatable))
        } catch {
            logger.warning(
                "wechat gave no answer", ("call", call.rawValue), ("app", app), ("code", error.code.rawValue))
            figures.record(.failed("wechat.upstream_unreachable"), at: clock.monotonicTime)
            throw .unavailable("wechat.upstream_unreachable", cause: error)
        }
        return try judge(answer, call, app, read)
    }

    private func judge<Found>(
        _ answer: HTTPAnswer, _ call: Call, _ app: String,
        _ read: (WeChatAnswer) throws(WeChatAnswer.Unreadable) -> Found
    ) throws(AuthenticationError) -> Found {
        guard answer.status == 200 else {
            logger.warning(
                "wechat answered with a status", ("call", call.rawValue), ("app", app),
                ("status", String(answer.status)))
            figures.record(.failed("wechat.upstream_bad_status"), at: clock.monotonicTime)
            throw .unavailable("wechat.upstream_bad_status")
        }
        let refusal: WeChatAnswer.Refusal
        do throws(WeChatAnswer.Unreadable) {
            let answer = try WeChatAnswer(answer.body)
            guard let found = try answer.refusal() else {
                let value = try read(answer)
                figures.record(.answered, at: clock.monotonicTime)
                return value
            }
            refusal = found
        } catch {
            logger.warning("wechat's answer cannot be read", ("call", call.rawValue), ("app", app))
            figures.record(.failed("wechat.upstream_bad_answer"), at: clock.monotonicTime)
            throw .unavailable("wechat.upstream_bad_answer")
        }
        throw refused(refusal, call, app)
    }

    private func refused(_ refusal: WeChatAnswer.Refusal, _ call: Call, _ app: String) -> AuthenticationError {
        let fault = WeChatFault.of(refusal.code, at: call)
        let error = fault.error
        let line = logger.with(
            ("call", call.rawValue), ("app", app), ("errcode", String(refusal.code)), ("rid", refusal.requestID ?? "-"),
            ("code", error.code.rawValue))
        switch fault.kind {
        case .rejected, .denied: line.info("wechat refused")
        case .configuration, .fault: line.error("wechat refused")
        case .busy, .limited, .token, .unknown: line.warning("wechat refused")
        }
        figures.record(.refused(fault.kind, error.code), at: clock.monotonicTime)
        return error
    }

    private func patience(until deadline: MonotonicTime) -> Duration {
        min(timeout, deadline.since(clock.monotonicTime))
    }
}
