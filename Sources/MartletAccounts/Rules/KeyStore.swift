internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// The API keys of one provider in an account store.
struct KeyStore: APIKeyStoring {
    /// The most changes in one query.
    private static let pageSize = 500
    /// The most uses in one transaction.
    private static let batchSize = 200
    /// Stands for a time that is not there.
    private static let none = Query.Value.integer(-1)

    let engine: any AccountEngine
    let provider: String

    func add(_ key: APIKeyRecord) async throws(StoreError) -> Bool {
        let query = Query(
            KeyStatement.add, .text(provider), .text(key.id), .text(Hexadecimal.text(key.digest)), .text(key.subject),
            .integer(key.isAccount ? 1 : 0), .text(StoredClaims.write(key.claims)), .text(Self.text(key.scopes)),
            .integer(key.createdAt.seconds), key.expiresAt.map { .integer($0.seconds) } ?? Self.none)
        guard TextRules.isKey(provider), TextRules.isKey(key.id), TextRules.isKey(key.subject) else {
            throw StoreError(.textInvalid)
        }
        return try await StoreError.mapping(
            await engine.transact(.commit(lock + [query]) { [lock] in !$0[lock.count].isEmpty }))
    }

    func key(_ id: String) async throws(StoreError) -> APIKeyRecord? {
        guard TextRules.isKey(id) else { return nil }
        return try await StoreError.mapping(
            await engine.rows(Query(KeyStatement.find, .text(provider), .text(id)), Self.record).first)
    }

    func keys(after start: String, limit: Int) async throws(StoreError) -> [APIKeyRecord] {
        guard !start.utf8.contains(0) else { return [] }
        let query = Query(KeyStatement.list, .text(provider), .text(start), .integer(Int64(clamping: max(limit, 1))))
        return try await StoreError.mapping(await engine.rows(query, Self.record))
    }

    func revoke(_ id: String, at now: UnixTime) async throws(StoreError) -> APIKeyRecord? {
        guard TextRules.isKey(id) else { return nil }
        let queries = [
            Query(KeyStatement.revoke, .text(provider), .text(id), .integer(now.seconds)),
            Query(KeyStatement.find, .text(provider), .text(id)),
        ]
        return try await StoreError.mapping(
            await engine.transact(
                .commit(lock + queries) { [lock] results throws(AccountError) in
                    try results[lock.count + 1].first.map(Self.record)
                }))
    }

    func rotate(
        _ id: String, to digest: [UInt8], acceptingPreviousUntil end: UnixTime?, at now: UnixTime
    ) async throws(StoreError) -> APIKeyRecord? {
        guard TextRules.isKey(id) else { return nil }
        let query = Query(
            KeyStatement.rotate, .text(provider), .text(id), .text(Hexadecimal.text(digest)),
            end.map { .integer($0.seconds) } ?? Self.none, .integer(now.seconds))
        return try await StoreError.mapping(
            await engine.transact(
                .commit(lock + [query]) { [lock] results throws(AccountError) in
                    try results[lock.count].first.map(Self.record)
                }))
    }

    func noteUses(_ uses: [(id: String, at: UnixTime)]) async throws(StoreError) {
        // In one order in all instances, because each update locks its row.
        let queries = uses.filter { TextRules.isKey($0.id) }.sorted { $0.id < $1.id }.map { use in
            Query(KeyStatement.noteUse, .text(provider), .text(use.id), .integer(use.at.seconds))
        }
        var rest = queries[...]
        while !rest.isEmpty {
            let batch = Array(rest.prefix(Self.batchSize))
            rest = rest.dropFirst(Self.batchSize)
            try await StoreError.mapping(await engine.commit(batch))
        }
    }

    func changes(since version: Int64?) async throws(StoreError) -> APIKeyChanges {
        // First the version: a change between both queries is then among the keys.
        var queries = [Query(KeyStatement.version, .text(provider))]
        if let version {
            queries.append(
                Query(KeyStatement.changes, .text(provider), .integer(version), .integer(Int64(Self.pageSize))))
        }
        return try await StoreError.mapping(
            await engine.read(
                ReadOperation(queries: queries) { results throws(AccountError) in
                    guard let row = results[0].first else { throw .corrupt }
                    let current = try row.integer(0)
                    guard let last = results[1].last else {
                        return APIKeyChanges(version: current, keys: [], isComplete: true)
                    }
                    return APIKeyChanges(
                        version: try last.integer(13), keys: try results[1].map(Self.record),
                        isComplete: results[1].count < Self.pageSize)
                }))
    }
}

// MARK: - Rows

extension KeyStore {
    private static let limits = JSONLimits(maximumDepth: 2, maximumBytes: 64 * 1024)

    /// Held until the commit: see ``KeyStatement``. SQLite has one writer at a time anyway.
    private var lock: [Query] {
        engine.dialect == .postgresql ? [Query(.lock, .text("api keys\n\(provider)"))] : []
    }

    private static func text(_ scopes: [String]) -> String {
        String(decoding: JSON.write(.array(scopes.map { .string($0) })), as: UTF8.self)
    }

    private static func scopes(_ text: String) throws(AccountError) -> [String] {
        guard let list = (try? JSON.parse(Array(text.utf8), limits: limits))?.array else { throw .corrupt }
        let scopes = list.compactMap(\.string)
        guard scopes.count == list.count else { throw .corrupt }
        return scopes
    }

    private static func record(_ row: Row) throws(AccountError) -> APIKeyRecord {
        func time(_ index: Int) throws(AccountError) -> UnixTime? {
            try row.optionalInteger(index).map { UnixTime(seconds: $0) }
        }
        func digest(_ text: String) throws(AccountError) -> [UInt8] {
            guard let bytes = Hexadecimal.bytes(text) else { throw .corrupt }
            return bytes
        }
        var record = APIKeyRecord(
            id: try row.text(0), digest: try digest(try row.text(1)), subject: try row.text(4),
            isAccount: try row.integer(5) != 0, claims: try row.object(6),
            scopes: try scopes(try row.text(7)), createdAt: try row.time(8),
            expiresAt: try time(10))
        if let text = try row.optionalText(2), let end = try time(3) {
            record.previous = APIKeyRecord.Previous(digest: try digest(text), endsAt: end)
        }
        record.rotatedAt = try time(9)
        record.revokedAt = try time(11)
        record.lastUsedAt = try time(12)
        return record
    }
}
