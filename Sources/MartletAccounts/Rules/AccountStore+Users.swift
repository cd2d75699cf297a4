package import MartletCore
internal import MartletJSON
package import MartletProvider

extension AccountStore: UserRecordStoring {
    /// Adds a user.
    /// - Throws: `duplicateUser`, `unavailable`.
    package func addUser(_ user: UserRecord, at now: UnixTime) async throws(AccountError) {
        try AccountStore.check(user.key, user.name, user.hash)
        let query = Query(
            .addUser, .text(user.key), .text(user.name), .text(user.hash), .integer(user.isDisabled ? 1 : 0),
            .integer(now.seconds), .text(StoredClaims.write(user.claims)), .integer(user.provedAt?.seconds ?? -1))
        guard try await engine.change(query) else { throw .duplicateUser }
    }

    /// Sets a user's password hash unconditionally.
    /// - Throws: `notFound`, `unavailable`.
    package func setHash(of key: String, to hash: String) async throws(AccountError) {
        guard TextRules.isKey(key) else { throw .unknownUser }
        try AccountStore.check(key, key, hash)
        guard try await engine.change(Query(.setHash, .text(key), .text(hash), now)) else { throw .unknownUser }
    }

    /// Records that an operator vouches for the address that is a user's name: a later proof takes nothing away.
    /// - Throws: `notFound`, `unavailable`.
    package func setProved(_ key: String, at now: UnixTime) async throws(AccountError) {
        guard TextRules.isKey(key) else { throw .unknownUser }
        guard try await engine.change(Query(.setProved, .text(key), .integer(now.seconds))) else { throw .unknownUser }
    }

    /// Disables or enables a user.
    /// - Throws: `notFound`, `unavailable`.
    package func setDisabled(_ key: String, _ isDisabled: Bool) async throws(AccountError) {
        guard TextRules.isKey(key) else { throw .unknownUser }
        let query = Query(.setDisabled, .text(key), .integer(isDisabled ? 1 : 0), now)
        guard try await engine.change(query) else { throw .unknownUser }
    }

    /// Lists users by canonical name.
    /// - Parameters:
    ///   - start: the canonical name behind which the list starts; empty for the first page.
    ///   - onlyDisabled: leaves out active users.
    ///   - limit: the maximum number of users of the page.
    package func users(
        after start: String, onlyDisabled: Bool, limit: Int
    ) async throws(AccountError) -> [UserRecord] {
        guard !start.utf8.contains(0) else { return [] }
        let query = Query(
            onlyDisabled ? .disabledUsers : .users, .text(start), .integer(Int64(clamping: max(limit, 1))))
        return try await engine.rows(query, AccountStore.record)
    }

    // The password provider expects `StoreError`.

    /// The user with a canonical name; `nil` if there is none.
    package func record(for key: String) async throws(StoreError) -> UserRecord? {
        guard TextRules.isKey(key) else { return nil }
        return try await StoreError.mapping(await engine.rows(Query(.findUser, .text(key)), AccountStore.record).first)
    }

    /// Replaces the hash if it is still `old`; `false` if it was changed concurrently.
    package func replaceHash(of key: String, from old: String, to new: String) async throws(StoreError) -> Bool {
        guard TextRules.isKey(key), !old.utf8.contains(0) else { return false }
        guard TextRules.isKey(new) else { throw StoreError(.textInvalid) }
        let query = Query(.replaceHash, .text(key), .text(old), .text(new), now)
        return try await StoreError.mapping(await engine.change(query))
    }

    /// Removes a user; `false` if there was none.
    package func removeRecord(for key: String) async throws(StoreError) -> Bool {
        guard TextRules.isKey(key) else { return false }
        return try await StoreError.mapping(await engine.change(Query(.removeUser, .text(key))))
    }

    private var now: Query.Value { .integer(clock.unixTime.seconds) }

    private static func check(_ key: String, _ name: String, _ hash: String) throws(AccountError) {
        guard TextRules.isKey(key), TextRules.isKey(name), TextRules.isKey(hash) else { throw .textInvalid }
    }

    static func record(_ row: Row) throws(AccountError) -> UserRecord {
        UserRecord(
            name: try row.text(1), key: try row.text(0), hash: try row.text(2), isDisabled: try row.integer(3) != 0,
            claims: try row.optionalObject(4),
            provedAt: try row.optionalTime(5))
    }
}
