internal import MartletCore
internal import MartletProvider

/// Counts the calls about opaque tokens, and knows whether the last one failed.
final class IntrospectionMetrics: Sendable {
    private struct State {
        var calls = 0
        var failures = 0
        var lastError: ErrorCode?
    }

    private let state = Lock(State())

    /// Counts a call.
    /// - Parameter failure: why there is no response; `nil` if there is one, whatever it says.
    /// - Returns: whether the failure is another one than that of the call before.
    @discardableResult
    func record(_ failure: ErrorCode?) -> Bool {
        state.withLock { state in
            state.calls &+= 1
            if failure != nil { state.failures &+= 1 }
            defer { state.lastError = failure }
            return failure != nil && failure != state.lastError
        }
    }

    /// The error of the last call; `nil` if it had a response.
    var lastError: ErrorCode? { state.withLock { $0.lastError } }

    var gauges: [ProviderHealth.Gauge] {
        let (calls, failures) = state.withLock { ($0.calls, $0.failures) }
        return [
            .init(
                name: "introspections_total", help: "Calls about opaque tokens.", kind: .counter, value: Double(calls)),
            .init(
                name: "introspection_failures_total", help: "Calls about opaque tokens without a response.",
                kind: .counter, value: Double(failures)),
        ]
    }
}
