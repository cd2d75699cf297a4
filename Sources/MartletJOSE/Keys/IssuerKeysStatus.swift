public import MartletCore

/// The status of an issuer's keys, for `/readyz`, `/metrics` and `martlet explain`.
public struct IssuerKeysStatus: Sendable {
    /// The origin of the keys in use.
    public enum Source: String, Sendable { case issuer, store, none }

    /// The IDs of the keys in use.
    public let keyIDs: [KeyID]
    public let source: Source
    /// The time since the keys in use were fetched from the issuer; `nil` without keys.
    public let age: Duration?
    /// Whether the keys are older than the ttl, because the issuer fails.
    public let isStale: Bool
    /// The number of fetches from the issuer.
    public let fetches: Int
    /// The number of failed refreshes.
    public let failures: Int
    /// The error of the last refresh; `nil` if it succeeded.
    public let lastError: ErrorCode?
    /// The time until the next refresh; `nil` when none is scheduled.
    public let nextRefresh: Duration?

    package init(
        keyIDs: [KeyID], source: Source, age: Duration?, isStale: Bool, fetches: Int, failures: Int,
        lastError: ErrorCode?,
        nextRefresh: Duration?
    ) {
        self.keyIDs = keyIDs
        self.source = source
        self.age = age
        self.isStale = isStale
        self.fetches = fetches
        self.failures = failures
        self.lastError = lastError
        self.nextRefresh = nextRefresh
    }
}
