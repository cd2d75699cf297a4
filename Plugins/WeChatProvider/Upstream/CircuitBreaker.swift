internal import MartletCore
internal import MartletProvider

/// A circuit breaker for calls with an id or a secret that WeChat has rejected repeatedly.
///
/// Only a changed configuration can help; further calls would only make the application look suspicious to WeChat.
final class CircuitBreaker: Sendable {
    /// The number of consecutive identical errors that open it.
    static let threshold = 5
    /// How long it stays open before it lets one probe through.
    static let openDuration = Duration.seconds(10)

    private struct State {
        var error: AuthenticationError?
        var count = 0
        var openUntil = MonotonicTime(nanoseconds: .min)
    }

    private let states: Lock<[String: State]> = Lock([:])

    /// - Throws: the last error, while an app's breaker is open.
    func check(_ app: String, at now: MonotonicTime) throws(AuthenticationError) {
        let error: AuthenticationError? = states.withLock { states in
            guard var state = states[app], state.count >= Self.threshold else { return nil }
            if now < state.openUntil { return state.error }
            // Half-open: one call goes through, the others fail until its result is recorded.
            state.openUntil = now + Self.openDuration
            states[app] = state
            return nil
        }
        if let error { throw error }
    }

    /// Records the result of an exchange; `nil` is a success.
    func record(_ error: AuthenticationError?, for app: String, at now: MonotonicTime) {
        states.withLock { states in
            guard let error, Self.isPermanent(error.code) else {
                states[app] = nil
                return
            }
            var state = states[app] ?? State()
            state.count = state.error?.code == error.code ? state.count &+ 1 : 1
            state.error = error
            state.openUntil = now + Self.openDuration
            states[app] = state
        }
    }

    private static func isPermanent(_ code: ErrorCode) -> Bool {
        code == "wechat.upstream_bad_secret" || code == "wechat.upstream_bad_app_id"
    }
}
