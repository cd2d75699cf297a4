public import MartletCore
public import MartletJSON

/// A password user in the account store.
public struct UserRecord: Sendable, Equatable {
    /// The name as entered, for display.
    public let name: String
    /// The canonical form of the name, unique; the key of lookups, throttles and identities.
    public let key: String
    /// The encoded password hash.
    public let hash: String
    public let isDisabled: Bool
    /// Claims of the user's identity, such as the `name` of a registration.
    public let claims: JSONObject
    /// When the owner of the mailbox that is the name was proved to be the user; `nil` until then, and for other names.
    public let provedAt: UnixTime?

    public init(
        name: String, key: String, hash: String, isDisabled: Bool, claims: JSONObject = [:], provedAt: UnixTime? = nil
    ) {
        self.name = name
        self.key = key
        self.hash = hash
        self.isDisabled = isDisabled
        self.claims = claims
        self.provedAt = provedAt
    }

    /// Whether a canonical name looks like the address of a mailbox, which may be another person's.
    public static func isAddress(_ key: String) -> Bool { key.utf8.contains(UInt8(ascii: "@")) }
}

/// The password users of the account store.
public protocol UserRecordStoring: Sendable {
    /// The user with a canonical name; `nil` if there is none.
    func record(for key: String) async throws(StoreError) -> UserRecord?
    /// Replaces the hash if it is still `old`; `false` if it was changed concurrently.
    func replaceHash(of key: String, from old: String, to new: String) async throws(StoreError) -> Bool
    /// Removes a user; `false` if there was none.
    func removeRecord(for key: String) async throws(StoreError) -> Bool
}
