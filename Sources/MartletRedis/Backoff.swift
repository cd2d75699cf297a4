/// How long to wait before the next attempt to connect: doubling from 50 ms, with jitter, never over 1.8 s, so that a
/// server that is back is found within 2 s.
struct Backoff {
    private static let shortest = 50
    private static let longest = 1800

    private var failures = 0

    /// The pause after one more failure.
    mutating func next(using generator: inout some RandomNumberGenerator) -> Duration {
        let ceiling = min(Backoff.shortest << min(failures, 10), Backoff.longest)
        failures += 1
        return .milliseconds(Int.random(in: ceiling / 2...ceiling, using: &generator))
    }

    /// A connection came about.
    mutating func reset() { failures = 0 }
}
