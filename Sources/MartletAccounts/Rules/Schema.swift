/// One forward migration of the schema; never changed once released.
struct Migration: Sendable {
    let version: Int64
    let statements: [String]
}

/// The database schema and its migrations.
///
/// `martlet_schema` lists the applied versions. A database with a newer version than this program knows is rejected,
/// because an older program could write data that a newer one does not expect.
struct Schema: Sendable {
    let migrations: [Migration]
    let dialect: Dialect

    init(_ dialect: Dialect) { self.init(dialect, Schema.migrations(dialect)) }

    init(_ dialect: Dialect, _ migrations: [Migration]) {
        self.dialect = dialect
        self.migrations = migrations
    }

    var latest: Int64 { migrations.last?.version ?? 0 }

    /// Whether the table of versions exists.
    var exists: ReadOperation<Bool> {
        let text =
            switch dialect {
            case .sqlite: "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'martlet_schema'"
            case .postgresql: "SELECT 1 WHERE to_regclass('martlet_schema') IS NOT NULL"
            }
        return ReadOperation(queries: [Query(.plain(text))]) { results in !results[0].isEmpty }
    }

    /// The schema version of a database that has the table.
    var version: ReadOperation<Int64> {
        ReadOperation(queries: [Schema.readVersion]) { results throws(AccountError) in try Schema.version(results[0]) }
    }

    /// Applies all pending migrations; safe to run concurrently.
    var upgrade: TransactionStep<Void> {
        var queries = [Query(.plain(Schema.table(dialect)))]
        if dialect == .postgresql {
            // Another instance may be migrating, and large tables take long.
            let timeouts = ["statement_timeout", "lock_timeout"].map { Query(.plain("SET LOCAL \($0) = 0")) }
            queries = timeouts + [Query(.lock, .text("martlet schema"))] + queries
        }
        queries.append(Schema.readVersion)
        let (migrations, latest) = (migrations, latest)
        return .run(queries) { results throws(AccountError) in
            let version = try Schema.version(results.rows.last ?? [])
            guard version <= latest else { throw .schemaNewer }
            var pending: [Query] = []
            for migration in migrations where migration.version > version {
                pending += migration.statements.map { Query(.plain($0)) }
                let insertion = "INSERT INTO martlet_schema (version) VALUES (\(migration.version))"
                pending.append(Query(.plain(insertion)))
            }
            return .commit(pending) { _ in }
        }
    }

    private static let readVersion = Query(.plain("SELECT coalesce(max(version), 0) FROM martlet_schema"))

    private static func version(_ rows: [Row]) throws(AccountError) -> Int64 {
        guard let row = rows.first else { throw .corrupt }
        return try row.integer(0)
    }

    private static func table(_ dialect: Dialect) -> String {
        switch dialect {
        case .sqlite: "CREATE TABLE IF NOT EXISTS martlet_schema (version INTEGER PRIMARY KEY) STRICT"
        case .postgresql: "CREATE TABLE IF NOT EXISTS martlet_schema (version bigint PRIMARY KEY)"
        }
    }
}

extension Schema {
    static func migrations(_ dialect: Dialect) -> [Migration] {
        [
            Migration(version: 1, statements: accountTables(dialect)),
            Migration(version: 2, statements: userTables(dialect)),
            Migration(version: 3, statements: loginTimes(dialect)),
        ]
    }

    private static func accountTables(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        return [
            """
            CREATE TABLE accounts (
                subject \(types.key) PRIMARY KEY NOT NULL,
                created_at \(types.integer) NOT NULL,
                kept_claims \(types.text) NOT NULL
            )\(types.strict)
            """,
            """
            CREATE TABLE identities (
                id \(types.key) PRIMARY KEY NOT NULL,
                account \(types.key) NOT NULL REFERENCES accounts (subject),
                provider \(types.key) NOT NULL,
                subject \(types.key) NOT NULL,
                created_at \(types.integer) NOT NULL,
                sealed_refresh_token \(types.bytes),
                UNIQUE (account, provider)
            )\(types.strict)
            """,
            """
            CREATE TABLE identity_subjects (
                provider \(types.key) NOT NULL,
                subject \(types.key) NOT NULL,
                identity \(types.key) NOT NULL REFERENCES identities (id) ON DELETE CASCADE,
                PRIMARY KEY (provider, subject)
            )\(types.strict)
            """,
            "CREATE INDEX identity_subjects_identity ON identity_subjects (identity)",
        ]
    }

    private static func userTables(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        return [
            """
            CREATE TABLE users (
                key \(types.key) PRIMARY KEY NOT NULL,
                name \(types.text) NOT NULL,
                hash \(types.text) NOT NULL,
                disabled \(types.integer) NOT NULL CHECK (disabled IN (0, 1)),
                created_at \(types.integer) NOT NULL,
                changed_at \(types.integer) NOT NULL
            )\(types.strict)
            """
        ]
    }

    /// Null for existing identities until the next login.
    private static func loginTimes(_ dialect: Dialect) -> [String] {
        ["ALTER TABLE identities ADD COLUMN last_login_at \(ColumnTypes(dialect).integer)"]
    }

    /// The column types of each database.
    private struct ColumnTypes {
        let text: String
        /// Text compared and ordered by its bytes.
        let key: String
        let integer: String
        let bytes: String
        let strict: String

        init(_ dialect: Dialect) {
            switch dialect {
            case .sqlite: (text, key, integer, bytes, strict) = ("TEXT", "TEXT", "INTEGER", "BLOB", " STRICT")
            case .postgresql:
                (text, key, integer, bytes, strict) = ("text", "text COLLATE \"C\"", "bigint", "bytea", "")
            }
        }
    }
}
