internal import MartletCore
internal import MartletProvider
private import Synchronization

/// What calls to WeChat came to, for `/readyz` and `/metrics`.
final class WeChatFigures: Sendable {
    /// What one call came to.
    enum Outcome: Sendable {
        case answered
        case refused(WeChatFault.Class, ErrorCode)
        /// There was no answer that could be read.
        case failed(ErrorCode)
    }

    private struct State {
        var calls = 0
        var rejections = 0
        var denials = 0
        var failures = 0
        var reuses = 0
        /// What the last call failed by, if it was WeChat's or the operator's fault; `nil` when it went well.
        var lastFailure: ErrorCode?
        var lastCall: MonotonicTime?
    }

    private let state = Mutex(State())

    /// Counts a call.
    func record(_ outcome: Outcome, at now: MonotonicTime) {
        state.withLock { state in
            state.calls &+= 1
            state.lastCall = now
            state.lastFailure = nil
            switch outcome {
            case .answered: break
            case .refused(.rejected, let code):
                state.rejections &+= 1
                if code == "wechat.upstream_used_code" { state.reuses &+= 1 }
            case .refused(.denied, _): state.denials &+= 1
            case .refused(_, let code), .failed(let code):
                state.failures &+= 1
                state.lastFailure = code
            }
        }
    }

    /// Counts a code that came back: a double submit after too long, or a replay.
    func recordReuse() { state.withLock { $0.reuses &+= 1 } }

    /// How things are at an instant.
    func health(at now: MonotonicTime) -> ProviderHealth {
        let state = state.withLock { $0 }
        let age = state.lastCall.map { "\(now.since($0).wholeSeconds) s ago" }
        let last = state.lastFailure.map { "failed by \($0)" } ?? "was answered"
        func counter(_ name: String, _ help: String, _ value: Int) -> ProviderHealth.Gauge {
            .init(name: name, help: help, kind: .counter, value: Double(value))
        }
        return ProviderHealth(
            state: state.lastFailure == nil ? .ready : .degraded,
            detail: age.map { "the last call \(last) \($0)" } ?? "nothing was asked yet",
            gauges: [
                counter("calls_total", "Calls to the provider's service.", state.calls),
                counter("rejections_total", "Calls that were refused for a code or a user.", state.rejections),
                counter("denials_total", "Calls that were refused for a banned or limited user.", state.denials),
                counter(
                    "failures_total", "Calls without an answer, or refused for a reason that is no user's.",
                    state.failures),
                counter("reused_codes_total", "Codes that were seen twice.", state.reuses),
            ])
    }
}
