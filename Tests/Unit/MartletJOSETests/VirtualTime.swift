import MartletCore
import Synchronization

/// A clock that only a test advances, and the tasks that sleep by it.
final class VirtualTime: Sendable {
    private struct State {
        var now: Int64 = 1_000_000_000_000
        var unixOffset: Int64 = 1_800_000_000
        var nextID = 0
        var sleepers: [Int: (deadline: Int64, continuation: CheckedContinuation<Void, any Error>)] = [:]
    }

    private static let start: Int64 = 1_000_000_000_000
    private let state = Mutex(State())

    init() {}

    /// A `Clock` of this time.
    var clock: Clock {
        Clock(
            unixTime: { [self] in
                state.withLock { UnixTime(seconds: $0.unixOffset + ($0.now - Self.start) / 1_000_000_000) }
            },
            monotonicTime: { [self] in state.withLock { MonotonicTime(nanoseconds: $0.now) } })
    }

    /// The number of sleeping tasks.
    var sleepers: Int { state.withLock { $0.sleepers.count } }

    /// How long from now until the next task wakes; `nil` if none sleeps.
    var nextWake: Duration? {
        state.withLock { state in state.sleepers.values.map { .nanoseconds($0.deadline - state.now) }.min() }
    }

    /// Sleeps until a test has advanced the clock by `span`, or until cancelled.
    func sleep(_ span: Duration) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    guard !Task.isCancelled else { return true }
                    state.sleepers[id] = (state.now + span.wholeNanoseconds, continuation)
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Advances the clock and wakes the tasks that are due.
    func advance(by span: Duration) {
        let due = state.withLock { state in
            state.now += span.wholeNanoseconds
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for id in due.keys { state.sleepers.removeValue(forKey: id) }
            return due.values.sorted { $0.deadline < $1.deadline }.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }

    /// Steps only the wall clock, as an operator may.
    func stepWallClock(by seconds: Int64) { state.withLock { $0.unixOffset += seconds } }
}
