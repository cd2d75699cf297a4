public import MartletCore

/// How an issuer's keys stand, for `/readyz`, `/metrics` and `martlet explain`.
public struct IssuerKeysStatus: Sendable {
    /// Where the keys in use came from.
    public enum Source: String, Sendable { case issuer, store, none }

    /// The keys in use, by name.
    public let keyIDs: [KeyID]
    public let source: Source
    /// How long ago the issuer gave out the keys in use; `nil` without keys.
    public let age: Duration?
    /// Older than the ttl, because the issuer fails.
    public let isStale: Bool
    /// How often the issuer was asked.
    public let fetches: Int
    /// How often that failed.
    public let failures: Int
    /// Why the last refresh failed; `nil` once one succeeds.
    public let lastError: ErrorCode?
    /// The time until the next refresh; `nil` when none is planned.
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
