public import MartletCore
public import MartletJSON

/// An API key as it is stored: everything but the key itself.
public struct APIKeyRecord: Sendable, Equatable {
    /// The key that this one has replaced, which is accepted for a while.
    public struct Previous: Sendable, Equatable {
        /// SHA-256 of the whole key.
        public let digest: [UInt8]
        /// It is not accepted at or after this instant.
        public let endsAt: UnixTime

        public init(digest: [UInt8], endsAt: UnixTime) {
            self.digest = digest
            self.endsAt = endsAt
        }
    }

    /// The public part of the key: it names the key in lists and logs.
    public let id: String
    /// SHA-256 of the whole key.
    public var digest: [UInt8]
    /// The key before the last rotation; `nil` if it is not accepted any more.
    public var previous: Previous?
    /// Whose key it is.
    public let subject: String
    /// Whether the subject is that of an account.
    public let isAccount: Bool
    public let claims: JSONObject
    public let scopes: [String]
    public let createdAt: UnixTime
    /// When the key was replaced by another one with the same id; `nil` if it never was.
    public var rotatedAt: UnixTime?
    /// `nil` if it does not expire.
    public let expiresAt: UnixTime?
    /// `nil` if it is not revoked.
    public var revokedAt: UnixTime?
    /// When it was used last, up to a minute or two late; `nil` if it never was, or if this is not stored.
    public var lastUsedAt: UnixTime?

    public init(
        id: String, digest: [UInt8], subject: String, isAccount: Bool, claims: JSONObject, scopes: [String],
        createdAt: UnixTime, expiresAt: UnixTime?
    ) {
        self.id = id
        self.digest = digest
        self.subject = subject
        self.isAccount = isAccount
        self.claims = claims
        self.scopes = scopes
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }
}

/// The API keys of a provider that have been added, rotated or revoked since a version.
public struct APIKeyChanges: Sendable {
    /// The version after these changes. One that is older than that of the request shows that the store was restored.
    public let version: Int64
    /// The changed keys, as they are now.
    public let keys: [APIKeyRecord]
    /// Whether there are no further changes.
    public let isComplete: Bool

    public init(version: Int64, keys: [APIKeyRecord], isComplete: Bool) {
        self.version = version
        self.keys = keys
        self.isComplete = isComplete
    }
}

/// The stored API keys of one provider.
public protocol APIKeyStoring: Sendable {
    /// Adds a key.
    /// - Returns: `false` if there is one with this id already.
    func add(_ key: APIKeyRecord) async throws(StoreError) -> Bool
    /// Finds a key, also one that is revoked or has expired; `nil` if there is none.
    func key(_ id: String) async throws(StoreError) -> APIKeyRecord?
    /// Lists keys by id.
    /// - Parameters:
    ///   - start: the id behind which the list starts; empty for the first page.
    ///   - limit: the maximum number of keys of the page.
    func keys(after start: String, limit: Int) async throws(StoreError) -> [APIKeyRecord]
    /// Revokes a key; the time of the first revocation stays.
    /// - Returns: the key; `nil` if there is none.
    func revoke(_ id: String, at now: UnixTime) async throws(StoreError) -> APIKeyRecord?
    /// Replaces a key that is not revoked.
    /// - Parameters:
    ///   - digest: SHA-256 of the new key.
    ///   - end: until when the old one is accepted; `nil` if it is not.
    /// - Returns: the key; `nil` if there is none, or if it is revoked.
    func rotate(
        _ id: String, to digest: [UInt8], acceptingPreviousUntil end: UnixTime?, at now: UnixTime
    ) async throws(StoreError) -> APIKeyRecord?
    /// Records when keys were used; the latest time wins, in any order of calls.
    func noteUses(_ uses: [(id: String, at: UnixTime)]) async throws(StoreError)
    /// The changes since a version; uses are not among them.
    /// - Parameter version: `nil` asks for the current version alone.
    func changes(since version: Int64?) async throws(StoreError) -> APIKeyChanges
}

/// What a new API key is for.
public struct APIKeyRequest: Sendable {
    public let subject: String
    /// Whether the subject is that of an account.
    public let isAccount: Bool
    public let claims: JSONObject
    public let scopes: [String]
    /// `nil` if it does not expire.
    public let expiresAt: UnixTime?

    public init(subject: String, isAccount: Bool, claims: JSONObject, scopes: [String], expiresAt: UnixTime?) {
        self.subject = subject
        self.isAccount = isAccount
        self.claims = claims
        self.scopes = scopes
        self.expiresAt = expiresAt
    }
}

/// A key that was just made: it is shown once and not stored.
public struct IssuedAPIKey: Sendable {
    public let record: APIKeyRecord
    public let key: Secret

    public init(record: APIKeyRecord, key: Secret) {
        self.record = record
        self.key = key
    }
}

/// A provider whose keys the command line manages.
public protocol APIKeyIssuing: Provider {
    /// Where its keys are stored.
    var keys: any APIKeyStoring { get }
    /// Whether they are in the account store.
    var storesKeysInAccounts: Bool { get }

    /// Makes a key and stores its record.
    func issue(_ request: APIKeyRequest) async throws(StoreError) -> IssuedAPIKey
    /// Makes a key that replaces another one.
    /// - Parameter grace: for how long the other one is accepted, too.
    /// - Returns: `nil` if there is no key with this id, or if it is revoked.
    func rotate(_ id: String, grace: Duration) async throws(StoreError) -> IssuedAPIKey?
}

/// What can be stored with an API key.
public enum APIKeyRules {
    /// The longest subject in bytes.
    public static let maximumSubjectBytes = 255
    /// The longest scope in bytes.
    public static let maximumScopeBytes = 128
    /// The most scopes of a key.
    public static let maximumScopes = 64
    /// The claims that every key has by itself.
    public static let ownClaims: Set<String> = ["key_id", "scope"]

    /// Whether a text can be a subject: not empty, without control characters, and without a space at either end.
    public static func isSubject(_ text: String) -> Bool {
        guard (1...maximumSubjectBytes).contains(text.utf8.count) else { return false }
        let space = UInt8(ascii: " ")
        guard text.utf8.first != space, text.utf8.last != space else { return false }
        return !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    /// Whether a text can be a scope (RFC 6749 §3.3).
    public static func isScope(_ text: String) -> Bool {
        (1...maximumScopeBytes).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
            }
    }
}
