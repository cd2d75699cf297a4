import Foundation

/// Measures how long the product takes, for comparison with what it promises.
///
/// A promise is for a machine that is not overloaded, and a test shares its cores and disk with the servers of other
/// tests. The kernel counts how long at least one process was ready to run and had no core, and how long one waited for
/// the disk (`/proc/pressure`). That time is left out, up to a limit: on an idle machine a promise is compared exactly,
/// and on a loaded one a wait for the wrong thing is found all the same.
package struct Stopwatch: Sendable {
    /// The longest time that is left out.
    private static let allowance = Duration.seconds(10)

    private let start = ContinuousClock.now
    private let stallsAtStart = Stopwatch.stalls

    package init() {}

    /// The time since the stopwatch was made; for what must not come too early.
    package var elapsed: Duration { ContinuousClock.now - start }

    /// That time without the part in which processes had to wait; for what must not come too late.
    package var undisturbed: Duration {
        let elapsed = elapsed
        let stalled = if let stalls = Self.stalls, let stallsAtStart { stalls - stallsAtStart } else { elapsed }
        return max(elapsed - min(stalled, Self.allowance), .zero)
    }

    /// The time since the machine's start in which processes had to wait; `nil` where the kernel does not count it.
    private static var stalls: Duration? {
        var sum = Duration.zero
        for resource in ["cpu", "io"] {
            guard let text = try? String(contentsOfFile: "/proc/pressure/\(resource)", encoding: .utf8),
                let time = time(in: text)
            else { return nil }
            sum += time
        }
        return sum
    }

    /// The time in the kernel's text, whose first line is `some avg10=0.00 avg60=0.00 avg300=0.00 total=39818684`, in
    /// microseconds.
    private static func time(in text: String) -> Duration? {
        guard let line = text.split(separator: "\n").first, line.hasPrefix("some "),
            let total = line.split(separator: "=").last, let microseconds = Int64(total)
        else { return nil }
        return .microseconds(microseconds)
    }
}
