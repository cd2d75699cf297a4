/// What a look-up in the shared store came to.
///
/// An outage is never a miss.
public enum StoreAnswer<Value: Sendable>: Sendable {
    case answer(Value)
    case miss
    case unavailable(StoreError)
}

/// Why the shared store could not be asked.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    public let code: ErrorCode
    /// For operators; holds no key, value or secret.
    public let message: String

    public init(code: ErrorCode, message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { "\(message) [\(code)]" }
}

/// The store that instances share: small values that expire by themselves.
///
/// Every call has a deadline of the store's own and ends as an answer, a miss or `unavailable`.
public protocol KeyValueStoring: Sendable {
    /// Reads one value.
    func value(for key: String) async -> StoreAnswer<[UInt8]>
    /// Writes one value that expires after `lifetime`.
    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError)
    /// Writes only if nothing is there; `true` when this call wrote. Atomic across instances.
    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool
    /// Removes the value if it is still exactly `value`; used to let go of a lease. Atomic across instances.
    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError)
}

/// A store that can also keep what may be used once and count what may happen so often: nonces, codes, attempts.
public protocol SharedStoring: KeyValueStoring {
    /// Removes the value, whatever it is.
    func remove(_ key: String) async throws(StoreError)
    /// Reads a value and removes it in one step: of many callers one gets it. Atomic across instances.
    func take(_ key: String) async -> StoreAnswer<[UInt8]>
    /// Adds 1 to a counter and gives its new value.
    ///
    /// The counter begins at 0 and ends `lifetime` after its first increment. Atomic across instances.
    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading
    /// Takes 1 from a counter that is above 0, and leaves its end as it is. Atomic across instances.
    ///
    /// A store that has no such thing may do nothing: what was counted too much runs out with the counter.
    func decrement(_ key: String) async throws(StoreError)
    /// Reads a counter without changing it; a counter that is not there reads 0.
    func counter(_ key: String) async throws(StoreError) -> CounterReading
    /// The part of the store that is for one purpose.
    ///
    /// A store that bounds what it holds does so for each part by itself. A value is read through the part that it was
    /// written through.
    func partition(_ purpose: StorePurpose) -> any SharedStoring
}

/// What values in the store are for: where room is short, one purpose does not take another's.
public enum StorePurpose: Sendable, CaseIterable {
    /// Whatever has no purpose of its own, such as the values of other providers.
    case general
    /// Issuers' keys, the leases on fetching them, and the key of nonces.
    case keys
    /// Counted attempts and failures.
    case throttles
    /// Users who may not log in for a while.
    case bans
    /// Where users have logged in.
    case places
    /// Nonces that were used.
    case nonces
    /// Codes, and data of clients, that were used.
    case codes
    /// What came of a post, for the same post again.
    case outcomes
    /// Changes that logins under way have to know of.
    case changes
}

extension SharedStoring {
    /// The whole store.
    public func partition(_ purpose: StorePurpose) -> any SharedStoring { self }

    /// Does nothing.
    public func decrement(_ key: String) async throws(StoreError) {}
}

/// A counter of the store at one moment.
public struct CounterReading: Sendable, Equatable {
    public let count: Int
    /// Until it begins again at 0.
    public let remaining: Duration

    public init(count: Int, remaining: Duration) {
        self.count = count
        self.remaining = remaining
    }
}
