public import MartletCore

/// A provider that can check whether the services it depends on are reachable and accept its credentials, for
/// `martlet check --online`.
public protocol OnlineChecking: Provider {
    /// Queries each service once, without side effects: it must not consume codes, tokens or quotas that users need.
    ///
    /// - Parameter deadline: the instant after which a result is of no use.
    /// - Returns: the checks, in order; the detail states what a check does not prove.
    func checkOnline(until deadline: MonotonicTime) async -> [CheckOutcome]
}
