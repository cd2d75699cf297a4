internal import MartletCore
internal import MartletProvider

extension AccountStore {
    func addUser(_ user: UserRecord, at now: UnixTime) async throws(AccountError) {
        try AccountStore.check(user.key, user.name, user.hash)
        let query = Query(
            .addUser, .text(user.key), .text(user.name), .text(user.hash), .integer(user.isDisabled ? 1 : 0),
            .integer(now.seconds))
        guard try await touch(query) else { throw .duplicateUser }
    }

    func setHash(of key: String, to hash: String) async throws(AccountError) {
        guard TextRules.isKey(key) else { throw .unknownUser }
        try AccountStore.check(key, key, hash)
        guard try await touch(Query(.setHash, .text(key), .text(hash), now)) else { throw .unknownUser }
    }

    func setDisabled(_ key: String, _ isDisabled: Bool) async throws(AccountError) {
        guard TextRules.isKey(key) else { throw .unknownUser }
        let query = Query(.setDisabled, .text(key), .integer(isDisabled ? 1 : 0), now)
        guard try await touch(query) else { throw .unknownUser }
    }

    func users() async throws(AccountError) -> [UserRecord] {
        try await engine.read(
            Reading(queries: [Query(.users)]) { answers throws(AccountError) in
                var records: [UserRecord] = []
                for row in answers[0] { records.append(try AccountStore.record(row)) }
                return records
            })
    }

    // The password provider knows the errors of stores alone.

    func record(for key: String) async throws(StoreError) -> UserRecord? {
        guard TextRules.isKey(key) else { return nil }
        do {
            return try await engine.read(
                Reading(queries: [Query(.findUser, .text(key))]) { answers throws(AccountError) in
                    guard let row = answers[0].first else { return nil }
                    return try AccountStore.record(row)
                })
        } catch {
            throw error.asStoreError
        }
    }

    func replaceHash(of key: String, from old: String, to new: String) async throws(StoreError) -> Bool {
        guard TextRules.isKey(key), !old.utf8.contains(0) else { return false }
        do {
            try AccountStore.check(key, key, new)
            return try await touch(Query(.replaceHash, .text(key), .text(old), .text(new), now))
        } catch {
            throw error.asStoreError
        }
    }

    func removeRecord(for key: String) async throws(StoreError) -> Bool {
        guard TextRules.isKey(key) else { return false }
        do {
            return try await touch(Query(.removeUser, .text(key)))
        } catch {
            throw error.asStoreError
        }
    }

    private var now: Query.Value { .integer(clock.unixTime.seconds) }

    /// Changes one row; `false` when there was none to change.
    private func touch(_ query: Query) async throws(AccountError) -> Bool {
        try await engine.change(.commit([query]) { answers in !answers[0].isEmpty })
    }

    private static func check(_ key: String, _ name: String, _ hash: String) throws(AccountError) {
        guard TextRules.isKey(key), TextRules.isKey(name), TextRules.isKey(hash) else { throw .textInvalid }
    }

    private static func record(_ row: Row) throws(AccountError) -> UserRecord {
        UserRecord(
            name: try row.text(1), key: try row.text(0), hash: try row.text(2), isDisabled: try row.integer(3) != 0)
    }
}
