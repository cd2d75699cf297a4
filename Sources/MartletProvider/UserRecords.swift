public import MartletCore

/// A password user as the account store keeps one.
public struct UserRecord: Sendable, Equatable {
    /// As it was given, for display.
    public let name: String
    /// The canonical form, unique; what look-ups, throttles and identities use.
    public let key: String
    /// The encoded password hash.
    public let hash: String
    public let isDisabled: Bool

    public init(name: String, key: String, hash: String, isDisabled: Bool) {
        self.name = name
        self.key = key
        self.hash = hash
        self.isDisabled = isDisabled
    }
}

/// The password users of the account store.
public protocol UserRecordStoring: Sendable {
    /// The user of a canonical name; `nil` if there is none.
    func record(for key: String) async throws(StoreError) -> UserRecord?
    /// Replaces the hash if it is still `old`; `false` when somebody else was faster.
    func replaceHash(of key: String, from old: String, to new: String) async throws(StoreError) -> Bool
    /// Removes a user; `false` when there was none.
    func removeRecord(for key: String) async throws(StoreError) -> Bool
}
