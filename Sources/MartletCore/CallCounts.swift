private import Synchronization

/// The upper bounds of the buckets of durations, in microseconds; the last bucket is open. The event loop has a copy.
package let latencyBounds: [Int] = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000,
]

/// What is counted of the calls to a dependency since the start: how many, how many failed, and how long they took.
@frozen package struct CallCounts: Sendable, Equatable {
    package private(set) var calls = 0
    package private(set) var failures = 0
    /// Calls with a result by their duration: one for each of ``latencyBounds``, and longer ones.
    package private(set) var buckets = [Int](repeating: 0, count: latencyBounds.count + 1)
    /// The durations of these calls together.
    package private(set) var sumMicroseconds = 0

    package init() {}

    fileprivate init(calls: Int, failures: Int, buckets: [Int], sumMicroseconds: Int) {
        (self.calls, self.failures, self.buckets) = (calls, failures, buckets)
        self.sumMicroseconds = sumMicroseconds
    }

    /// Counts a call.
    /// - Parameter duration: `nil` for a call that was not made.
    package mutating func count(_ duration: Duration?, failed: Bool) {
        calls &+= 1
        if failed { failures &+= 1 }
        guard let duration else { return }
        buckets[CallCounts.bucket(of: duration)] &+= 1
        sumMicroseconds &+= CallCounts.microseconds(duration)
    }

    fileprivate static func microseconds(_ duration: Duration) -> Int {
        Int(clamping: max(duration.wholeNanoseconds, 0) / 1000)
    }

    /// The index of the bucket of a duration.
    package static func bucket(of duration: Duration) -> Int {
        let microseconds = microseconds(duration)
        return latencyBounds.firstIndex { microseconds <= $0 } ?? latencyBounds.count
    }
}

/// Counts the calls to a dependency, from any thread.
package final class CallRecorder: Sendable {
    private let calls = Atomic(0)
    private let failures = Atomic(0)
    private let sum = Atomic(0)
    private let buckets = InlineArray<17, AtomicCount> { _ in AtomicCount() }

    /// A counter that can be an element of an array.
    private struct AtomicCount: ~Copyable, Sendable {
        let value = Atomic(0)
    }

    package init() {}

    /// What was counted so far.
    package var counts: CallCounts {
        var found: [Int] = []
        for index in buckets.indices { found.append(buckets[index].value.load(ordering: .relaxed)) }
        return CallCounts(
            calls: calls.load(ordering: .relaxed), failures: failures.load(ordering: .relaxed), buckets: found,
            sumMicroseconds: sum.load(ordering: .relaxed))
    }

    /// Counts a call.
    /// - Parameter duration: `nil` for a call that was not made.
    package func count(_ duration: Duration?, failed: Bool) {
        calls.wrappingAdd(1, ordering: .relaxed)
        if failed { failures.wrappingAdd(1, ordering: .relaxed) }
        guard let duration else { return }
        buckets[CallCounts.bucket(of: duration)].value.wrappingAdd(1, ordering: .relaxed)
        sum.wrappingAdd(CallCounts.microseconds(duration), ordering: .relaxed)
    }
}
