internal import MartletCore
internal import MartletProvider
private import Synchronization

/// Stops asking WeChat with an id or a secret that it has refused again and again.
///
/// The configuration stays wrong until somebody changes it; more calls only bring the application under suspicion.
final class Breaker: Sendable {
    /// How often in a row the same refusal opens it.
    static let threshold = 5
    /// How long it stays open; then one call tries again.
    static let pause = Duration.seconds(10)

    private struct State {
        var error: AuthenticationError?
        var count = 0
        var openUntil = MonotonicTime(nanoseconds: .min)
    }

    private let states: Mutex<[String: State]> = Mutex([:])

    /// - Throws: the refusal, while an app's breaker is open.
    func check(_ app: String, at now: MonotonicTime) throws(AuthenticationError) {
        let error: AuthenticationError? = states.withLock { states in
            guard var state = states[app], state.count >= Self.threshold else { return nil }
            if now < state.openUntil { return state.error }
            // One goes through; the others wait for what comes of it.
            state.openUntil = now + Self.pause
            states[app] = state
            return nil
        }
        if let error { throw error }
    }

    /// Takes note of what an exchange came to; `nil` is a success.
    func record(_ error: AuthenticationError?, for app: String, at now: MonotonicTime) {
        states.withLock { states in
            guard let error, Self.isLasting(error.code) else {
                states[app] = nil
                return
            }
            var state = states[app] ?? State()
            state.count = state.error?.code == error.code ? state.count &+ 1 : 1
            state.error = error
            state.openUntil = now + Self.pause
            states[app] = state
        }
    }

    private static func isLasting(_ code: ErrorCode) -> Bool {
        code == "wechat.upstream_bad_secret" || code == "wechat.upstream_bad_app_id"
    }
}
