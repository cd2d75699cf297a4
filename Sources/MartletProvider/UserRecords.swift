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

    public init(name: String, key: String, hash: String, isDisabled: Bool, claims: JSONObject = [:]) {
        self.name = name
        self.key = key
        self.hash = hash
        self.isDisabled = isDisabled
        self.claims = claims
    }
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
