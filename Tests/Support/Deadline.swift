import Foundation

/// The end of a wait, on the clock that never goes back.
package struct Deadline: Sendable {
    private let end: ContinuousClock.Instant

    /// So long from now.
    package init(in span: Duration) { end = ContinuousClock.now + span }

    package var hasPassed: Bool { ContinuousClock.now >= end }

    /// What is left, never negative, in the milliseconds that `poll` wants, rounded up.
    package var milliseconds: Int32 {
        let left = end - ContinuousClock.now
        guard left > .zero else { return 0 }
        let whole = left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000 + 1
        return Int32(clamping: whole)
    }
}

/// Blocks until the condition holds, and says what did not happen if it takes longer than `limit`, by a stopwatch.
///
/// The default is for what has no deadline of its own, and long, because a loaded machine is not a failure.
package func waitUntil(
    _ what: String, within limit: Duration = .seconds(30), _ condition: () throws -> Bool
) throws {
    let stopwatch = Stopwatch()
    while true {
        if try condition() { return }
        guard stopwatch.undisturbed < limit else { throw TestFailure("after \(limit) still not: \(what)") }
        pause(.milliseconds(10))
    }
}

/// The same in a task, which leaves its thread to others meanwhile.
package func eventually(
    _ what: String, within limit: Duration = .seconds(30), _ condition: () async throws -> Bool
) async throws {
    let stopwatch = Stopwatch()
    // What another task is about to do needs no time but its turn.
    for _ in 0..<100 {
        if try await condition() { return }
        await Task.yield()
    }
    while try await !condition() {
        guard stopwatch.undisturbed < limit else { throw TestFailure("after \(limit) still not: \(what)") }
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// Blocks this thread for a while; for tests whose subject is the passing of time.
package func pause(_ span: Duration) {
    let (seconds, attoseconds) = span.components
    Thread.sleep(forTimeInterval: Double(seconds) + Double(attoseconds) / 1e18)
}

/// Runs the block on a thread of its own, and waits for it when asked.
package final class Background<Value: Sendable>: Sendable {
    private let done = DispatchSemaphore(value: 0)
    private let outcome = Box<Result<Value, any Error>?>(nil)

    package init(_ work: @escaping @Sendable () throws -> Value) {
        let thread = Thread { [done, outcome] in
            let result = Result { try work() }
            outcome.withLock { $0 = result }
            done.signal()
        }
        thread.stackSize = 1 << 20
        thread.start()
    }

    /// What the block came to; once.
    package func value(within limit: Duration = .seconds(30)) throws -> Value {
        let milliseconds = Int(Deadline(in: limit).milliseconds)
        guard done.wait(timeout: .now() + .milliseconds(milliseconds)) == .success else {
            throw TestFailure("the background work was not done after \(limit)")
        }
        done.signal()
        guard let result = outcome.withLock({ $0 }) else { throw TestFailure("no result") }
        return try result.get()
    }
}
