internal import MartletCore
internal import MartletProvider

/// Counts calls to WeChat and their results, for `/readyz` and `/metrics`.
final class WeChatMetrics: Sendable {
    /// The result of one call.
    enum Outcome: Sendable {
        case succeeded
        /// WeChat returned an error.
        case error(WeChatError.Kind, ErrorCode)
        /// There was no valid response.
        case failed(ErrorCode)
    }

    private struct State {
        var calls = 0
        var rejections = 0
        var denials = 0
        var failures = 0
        var reuses = 0
        /// The last call's error, if WeChat or the configuration caused it; `nil` otherwise.
        var lastFailure: ErrorCode?
        var lastCall: MonotonicTime?
    }

    private let state = Lock(State())

    /// Counts a call.
    func record(_ outcome: Outcome, at now: MonotonicTime) {
        state.withLock { state in
            state.calls &+= 1
            state.lastCall = now
            state.lastFailure = nil
            switch outcome {
            case .succeeded: break
            case .error(.rejected, let code):
                state.rejections &+= 1
                if code == "wechat.upstream_used_code" { state.reuses &+= 1 }
            case .error(.denied, _): state.denials &+= 1
            case .error(_, let code), .failed(let code):
                state.failures &+= 1
                state.lastFailure = code
            }
        }
    }

    /// Counts a code that was presented again: a late double submit, or a replay.
    func recordReuse() { state.withLock { $0.reuses &+= 1 } }

    /// The provider's health at an instant.
    func health(at now: MonotonicTime) -> ProviderHealth {
        let state = state.withLock { $0 }
        let age = state.lastCall.map { "\(now.since($0).wholeSeconds) s ago" }
        let last = state.lastFailure.map { "failed with \($0)" } ?? "succeeded"
        func counter(_ name: String, _ help: String, _ value: Int) -> ProviderHealth.Gauge {
            .init(name: name, help: help, kind: .counter, value: Double(value))
        }
        return ProviderHealth(
            state: state.lastFailure == nil ? .ready : .degraded,
            detail: age.map { "the last call \(last) \($0)" } ?? "no call has been made yet",
            gauges: [
                counter("calls_total", "Calls to the provider's service.", state.calls),
                counter("rejections_total", "Calls that failed because of the code or the user.", state.rejections),
                counter("denials_total", "Calls that failed because the user is banned or limited.", state.denials),
                counter(
                    "failures_total",
                    "Calls without a valid response, or that failed for a reason that is not the user's.",
                    state.failures),
                counter("reused_codes_total", "Codes that were presented again.", state.reuses),
            ])
    }
}
