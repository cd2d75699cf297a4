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
