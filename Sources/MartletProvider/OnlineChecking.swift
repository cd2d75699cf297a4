public import MartletCore

/// A provider that can ask the services it depends on whether they are there and accept its credentials; for
/// `martlet check --online`.
public protocol OnlineChecking: Provider {
    /// Asks each service once. Nothing may be used up or changed there: no code, no token, no quota that people need.
    ///
    /// - Parameter deadline: when an answer is of no more use.
    /// - Returns: what was asked, in order; the detail says what an answer does not show.
    func checkOnline(until deadline: MonotonicTime) async -> [CheckVerdict]
}
