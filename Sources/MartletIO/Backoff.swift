/// Exponential backoff between connection attempts: 50 ms to 1.8 s with jitter, so that a restarted server is reached
/// within 2 s.
package struct Backoff {
    private static let shortest = 50
    private static let longest = 1800

    /// The failed attempts since the last reset.
    package private(set) var failures = 0

    package init() {}

    /// Counts a failure and returns the delay before the next attempt.
    package mutating func next(using generator: inout some RandomNumberGenerator) -> Duration {
        let ceiling = min(Backoff.shortest << min(failures, 10), Backoff.longest)
        failures += 1
        return .milliseconds(Int.random(in: ceiling / 2...ceiling, using: &generator))
    }

    /// Resets the backoff after a successful connection.
    package mutating func reset() { failures = 0 }
}
