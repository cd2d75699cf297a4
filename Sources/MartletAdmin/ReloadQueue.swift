internal import MartletCore

/// What has asked for a reload.
package enum ReloadTrigger: Sendable, Equatable {
    case signal
    /// A file that the configuration names has changed.
    case watch
    /// A request to the admin listener.
    case admin(address: String, requestID: String)
}

/// The result of a requested reload.
package enum ReloadOutcome: Sendable, Equatable {
    /// The new configuration is in effect; its warnings.
    case done(routes: Int, warnings: [String])
    /// The old configuration stays in effect; all errors and warnings.
    case rejected([String])
    /// The process is shutting down.
    case ending
    /// It has not completed in time, and continues.
    case underWay
    /// Too many requests are waiting.
    case busy
}

/// Requests for reloads: every request that is waiting when a reload begins gets its outcome.
package final class ReloadQueue: Sendable {
    /// Identifies a waiting request.
    package typealias Number = UInt64

    private struct State {
        var last: Number = 0
        var waiting: [Number: Waiter] = [:]
        var isClosed = false
    }

    private struct Waiter {
        let trigger: ReloadTrigger
        let continuation: CheckedContinuation<ReloadOutcome, Never>
    }

    private static let limit = 16

    private let begin: @Sendable () -> Void
    private let state = Lock(State())

    /// - Parameter begin: starts a reload asynchronously.
    package init(_ begin: @escaping @Sendable () -> Void) { self.begin = begin }

    /// Requests a reload and waits for its outcome, at most for the timeout.
    func request(as trigger: ReloadTrigger, timeout: Duration) async -> ReloadOutcome {
        await withCheckedContinuation { continuation in
            let enqueued = state.withLock { state -> Result<Number, RejectionError> in
                guard !state.isClosed else { return .failure(RejectionError(outcome: .ending)) }
                guard state.waiting.count < ReloadQueue.limit else { return .failure(RejectionError(outcome: .busy)) }
                state.last += 1
                state.waiting[state.last] = Waiter(trigger: trigger, continuation: continuation)
                return .success(state.last)
            }
            switch enqueued {
            case .failure(let rejection): continuation.resume(returning: rejection.outcome)
            case .success(let number):
                begin()
                Task {
                    try? await Task.sleep(for: timeout)
                    self.complete([number], .underWay)
                }
            }
        }
    }

    private struct RejectionError: Error {
        let outcome: ReloadOutcome
    }

    /// The requests that a reload which begins now completes.
    package func waiting() -> [Number] { state.withLock { Array($0.waiting.keys) } }

    /// What has asked for a reload that completes these requests: the first of them, or a signal.
    package func trigger(of numbers: [Number]) -> ReloadTrigger {
        state.withLock { state in numbers.min().flatMap { state.waiting[$0]?.trigger } } ?? .signal
    }

    /// Resumes some of the waiting requests.
    package func complete(_ numbers: [Number], _ outcome: ReloadOutcome) {
        let waiters = state.withLock { state in numbers.compactMap { state.waiting.removeValue(forKey: $0) } }
        for waiter in waiters { waiter.continuation.resume(returning: outcome) }
    }

    /// Rejects all requests from now on: the process is shutting down.
    package func close() {
        state.withLock { $0.isClosed = true }
        complete(waiting(), .ending)
    }
}
