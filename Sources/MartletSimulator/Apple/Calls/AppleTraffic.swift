internal import MartletCore

/// What arrives at Apple's endpoints, and the errors that tests inject there. Thread-safe.
final class AppleTraffic: Sendable {
    private struct State {
        var log = RequestLog()
        var errors = ErrorInjection()
    }

    private let state = Lock(State())

    /// Calls with the log.
    func withLog<Result: Sendable>(_ body: (inout RequestLog) -> Result) -> Result {
        state.withLock { body(&$0.log) }
    }

    /// Calls with the injected errors.
    func withErrors<Result: Sendable>(_ body: (inout ErrorInjection) -> Result) -> Result {
        state.withLock { body(&$0.errors) }
    }
}
