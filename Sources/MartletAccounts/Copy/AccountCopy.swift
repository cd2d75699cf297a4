package import MartletCore
internal import MartletCrypto
package import MartletIO

/// How far the copy of a table is.
package struct CopyProgress: Sendable {
    package let table: String
    package let rows: Int
}

/// A table that is the same in both databases.
package struct CopiedTable: Sendable, Equatable {
    package let name: String
    package let rows: Int
    /// SHA-256 in hexadecimal over all rows in the order of their keys.
    package let digest: String
}

/// Copies the accounts of an SQLite file to PostgreSQL.
///
/// Both sides are read in the order of their keys and compared, so a run goes on where one before it was interrupted,
/// and a later run brings what has changed since. Accounts themselves are never removed from a store; one that only the
/// target has shows that the target has been used, and is a conflict. The mark of the target is a lease that does not
/// belong to any gateway.
package struct AccountCopy: Sendable {
    private static let pageSize = 2000
    /// The size of a batch of rows, unless one row is larger.
    private static let batchBytes = 4 << 20
    private static let conflictSubjects = 100

    private enum Mark: String { case copying, done }

    private let source: CopySource
    private let target: PostgreSQLEngine
    private let progress: @Sendable (CopyProgress) -> Void

    /// - Parameters:
    ///   - source: `sqlite:PATH`.
    ///   - target: `postgresql://…`.
    ///   - progress: called after each batch.
    /// - Throws: `accounts.bad_url` for other databases.
    package init(
        from source: AccountURL, to target: AccountURL, clock: Clock, logger: Logger, loop: ServiceLoop,
        resolver: Resolver, progress: @escaping @Sendable (CopyProgress) -> Void
    ) throws(AccountError) {
        guard case .sqlite(let path) = source else { throw .badURL("the source must start with sqlite:") }
        guard case .postgresql(let text) = target else { throw .badURL("the target must start with postgresql://") }
        var options = PostgreSQLOptions()
        options.connections = 1
        options.callTimeout = .seconds(60)
        options.lockTimeout = .seconds(10)
        options.upgradeGrace = .seconds(30)
        self.source = CopySource(path: path, clock: clock)
        self.target = PostgreSQLEngine(
            try PostgreSQLTarget(text), options: options, schema: Schema(.postgresql), loop: loop, resolver: resolver,
            clock: clock, logger: logger)
        self.progress = progress
    }

    /// Copies everything, and compares both databases.
    /// - Parameter isFinal: makes the source read-only, and copies work that is left to do as well.
    /// - Returns: what is the same in both.
    package func run(isFinal: Bool) async throws(AccountError) -> [CopiedTable] {
        let outcome: Result<[CopiedTable], AccountError>
        do throws(AccountError) {
            outcome = .success(try await copy(isFinal))
        } catch {
            outcome = .failure(error)
        }
        await source.close()
        await target.shutdown()
        return try outcome.get()
    }

    private func copy(_ isFinal: Bool) async throws(AccountError) -> [CopiedTable] {
        try await source.open()
        try await target.start()
        let schema = Schema(.postgresql)
        guard try await target.read(schema.version) == schema.latest else { throw .schemaNewer }
        let isNew = try await claimTarget()
        let kept = CopyTable.all.filter { !$0.isWork }
        try await bring(kept, isNew: isNew)
        guard isFinal else { return try await verify(kept) }
        // Most has been copied, so the time without writes is short.
        try await source.markMoved()
        try await source.open()
        try await bring(CopyTable.all, isNew: false)
        let tables = try await verify(CopyTable.all)
        try await finishTarget()
        return tables
    }

    private func bring(_ tables: [CopyTable], isNew: Bool) async throws(AccountError) {
        if !isNew {
            try await findConflict()
            // What is gone may be in the way of what is new, such as an identity that was linked to another account.
            for table in tables.reversed() { try await remove(table) }
        }
        for table in tables { try await add(table) }
    }
}

// MARK: - The mark of the target

extension AccountCopy {
    private static let lease = "accounts copy"

    /// - Returns: whether it is empty.
    private func claimTarget() async throws(AccountError) -> Bool {
        let query = Query(.plain("SELECT owner FROM leases WHERE name = $1"), .text(Self.lease))
        if let row = try await read(query).first {
            guard try row.text(0) == Mark.copying.rawValue else { throw .copyDone }
            return false
        }
        for table in CopyTable.all {
            guard try await !read(Query(.plain("SELECT 1 FROM \(table.name) LIMIT 1"))).isEmpty else { continue }
            try await findConflict()
            throw .copyConflict("table \(table.name) of the target is not empty, and no copy has filled it")
        }
        try await write([
            Query(
                .plain("INSERT INTO leases (name, owner, expires_at) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING"),
                .text(Self.lease), .text(Mark.copying.rawValue))
        ])
        return true
    }

    /// Continues the numbers of the source, and keeps later runs from replacing what gateways write.
    private func finishTarget() async throws(AccountError) {
        var queries = CopyTable.all.filter(\.isNumbered).map { table in
            Query(
                .plain(
                    """
                    SELECT setval(pg_get_serial_sequence('\(table.name)', 'number'), \
                    coalesce((SELECT max(number) FROM \(table.name)), 1))
                    """))
        }
        queries.append(
            Query(
                .plain("UPDATE leases SET owner = $2 WHERE name = $1"), .text(Self.lease), .text(Mark.done.rawValue)))
        try await write(queries)
    }
}

// MARK: - Comparing and writing

extension AccountCopy {
    /// One side of a comparison: rows in the order of their keys, a page at a time.
    private struct Rows {
        let table: CopyTable
        let read: @Sendable (Query) async throws(AccountError) -> [Row]
        private(set) var page: ArraySlice<Row> = []
        private var last: Row?
        private var isComplete = false

        init(_ table: CopyTable, _ read: @escaping @Sendable (Query) async throws(AccountError) -> [Row]) {
            self.table = table
            self.read = read
        }

        mutating func next() async throws(AccountError) -> Row? {
            if page.isEmpty { try await turn() }
            return page.popFirst()
        }

        /// The rest of the page, or the next one; empty at the end.
        mutating func nextPage() async throws(AccountError) -> ArraySlice<Row> {
            try await turn()
            defer { page = [] }
            return page
        }

        private mutating func turn() async throws(AccountError) {
            guard !isComplete else { return }
            let rows = try await read(try table.page(after: last, limit: AccountCopy.pageSize))
            isComplete = rows.count < AccountCopy.pageSize
            last = rows.last ?? last
            page = rows[...]
        }
    }

    private enum Difference {
        case onlySource(Row)
        case onlyTarget(Row)
        case changed(Row)
        case same
    }

    /// Reads both sides once, in the order of their keys.
    private struct Comparison {
        private var source: Rows
        private var target: Rows
        private var left: Row?
        private var right: Row?

        init(_ table: CopyTable, _ copy: AccountCopy) async throws(AccountError) {
            source = copy.rows(ofSource: table)
            target = copy.rows(ofTarget: table)
            left = try await source.next()
            right = try await target.next()
        }

        /// - Returns: `nil` at the end.
        mutating func next() async throws(AccountError) -> Difference? {
            guard let row = left else {
                guard let other = right else { return nil }
                right = try await target.next()
                return .onlyTarget(other)
            }
            if let other = right, try source.table.isBefore(other, row) {
                right = try await target.next()
                return .onlyTarget(other)
            }
            left = try await source.next()
            guard let other = right, try !source.table.isBefore(row, other) else { return .onlySource(row) }
            right = try await target.next()
            return AccountCopy.isSame(row, other) ? .same : .changed(row)
        }
    }

    /// By bytes: Swift's comparison of texts finds different bytes equal.
    private static func isSame(_ row: Row, _ other: Row) -> Bool {
        row.columns.elementsEqual(other.columns) { left, right in
            guard let left, let right else { return left == nil && right == nil }
            return left.utf8.elementsEqual(right.utf8)
        }
    }

    private func rows(ofSource table: CopyTable) -> Rows {
        Rows(table) { [source] query async throws(AccountError) in try await source.read(query) }
    }

    private func rows(ofTarget table: CopyTable) -> Rows {
        Rows(table) { [self] query async throws(AccountError) in try await read(query) }
    }

    private func read(_ query: Query) async throws(AccountError) -> [Row] {
        try await target.read(ReadOperation(queries: [query]) { $0[0] })
    }

    private func write(_ queries: [Query]) async throws(AccountError) {
        try await target.transact(TransactionStep<Void>.commit(queries) { _ in })
    }

    /// Adds the rows that the target lacks, and replaces those that differ.
    private func add(_ table: CopyTable) async throws(AccountError) {
        var comparison = try await Comparison(table, self)
        var (batch, bytes, count): ([Row], Int, Int) = ([], 0, 0)
        while let difference = try await comparison.next() {
            switch difference {
            case .onlySource(let row), .changed(let row):
                batch.append(row)
                bytes += row.columns.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
            case .same, .onlyTarget: break
            }
            count += 1
            guard batch.count >= Self.pageSize || bytes >= Self.batchBytes else { continue }
            try await write([try table.replacement(batch)])
            (batch, bytes) = ([], 0)
            progress(CopyProgress(table: table.name, rows: count))
        }
        if !batch.isEmpty { try await write([try table.replacement(batch)]) }
        progress(CopyProgress(table: table.name, rows: count))
    }

    /// Removes the rows that the source has no longer.
    private func remove(_ table: CopyTable) async throws(AccountError) {
        var comparison = try await Comparison(table, self)
        var batch: [Row] = []
        while let difference = try await comparison.next() {
            guard case .onlyTarget(let row) = difference else { continue }
            batch.append(row)
            guard batch.count >= Self.pageSize else { continue }
            try await write([try table.removal(batch)])
            batch = []
        }
        if !batch.isEmpty { try await write([try table.removal(batch)]) }
    }

    /// Fails if the target has an account that the source lacks.
    private func findConflict() async throws(AccountError) {
        var comparison = try await Comparison(CopyTable.all[0], self)
        while let difference = try await comparison.next() {
            guard case .onlyTarget(let row) = difference else { continue }
            let subject = try row.text(0)
            try await findSharedIdentity(of: subject)
            throw .copyConflict("the target has account \(subject), which the source lacks")
        }
    }

    /// Fails if an identity of an account in the target belongs to another account in the source.
    private func findSharedIdentity(of account: String) async throws(AccountError) {
        let identities = Query(
            .plain(
                """
                SELECT s.provider, s.subject FROM identity_subjects s JOIN identities i ON i.id = s.identity \
                WHERE i.account = $1 ORDER BY s.provider, s.subject LIMIT \(Self.conflictSubjects)
                """), .text(account))
        for row in try await read(identities) {
            let owner = Query(
                .plain(
                    """
                    SELECT i.account FROM identity_subjects s JOIN identities i ON i.id = s.identity \
                    WHERE s.provider = $1 AND s.subject = $2
                    """), .text(try row.text(0)), .text(try row.text(1)))
            guard let found = try await source.read(owner).first else { continue }
            throw .copyConflict(
                """
                an identity of provider '\(try row.text(0))' belongs to account \(try found.text(0)) in the source, and \
                to account \(account) in the target
                """)
        }
    }

    private func verify(_ tables: [CopyTable]) async throws(AccountError) -> [CopiedTable] {
        var verified: [CopiedTable] = []
        for table in tables {
            let expected = try await summary(of: rows(ofSource: table))
            let found = try await summary(of: rows(ofTarget: table))
            guard expected == found else {
                throw .copyDiffers(
                    "table \(table.name) has \(expected.rows) rows in the source and \(found.rows) in the target, "
                        + "or they differ")
            }
            verified.append(expected)
        }
        return verified
    }

    /// Each page is hashed with the digest of those before it.
    private func summary(of rows: Rows) async throws(AccountError) -> CopiedTable {
        var (rows, count, digest): (Rows, Int, [UInt8]) = (rows, 0, Array(SHA256.digest([])))
        while true {
            let page = try await rows.nextPage()
            guard !page.isEmpty else { break }
            count += page.count
            var bytes = digest
            for row in page {
                for column in row.columns {
                    guard let column else {
                        bytes.append(0)
                        continue
                    }
                    // The length in front keeps neighbors apart.
                    bytes.append(1)
                    let length = UInt32(clamping: column.utf8.count)
                    bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) }
                    bytes += Array(column.utf8)
                }
            }
            digest = Array(SHA256.digest(bytes))
        }
        let text = digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return CopiedTable(name: rows.table.name, rows: count, digest: text)
    }
}

extension AccountError {
    static let copyDone = unavailable(
        .accountsCopyDone, "a final copy has completed the target; it may be in use")
    static let moved = unavailable(
        .accountsMoved, "SQLite file is read-only: its accounts were moved to another database")

    static func copyConflict(_ reason: String) -> AccountError { unavailable(.accountsCopyConflict, reason) }
    static func copyDiffers(_ reason: String) -> AccountError { unavailable(.accountsCopyDiffers, reason) }
}
