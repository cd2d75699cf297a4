/// One step of the schema, forward only; once released it is never changed.
struct Migration: Sendable {
    let version: Int64
    let statements: [String]
}

/// The tables, and how they come about.
///
/// `martlet_schema` lists the versions that a database has been through. One that has been through more than this
/// program knows is refused: an older program would write what a newer one does not expect.
struct Schema: Sendable {
    let migrations: [Migration]
    let dialect: Dialect

    init(_ dialect: Dialect) { self.init(dialect, Schema.migrations(dialect)) }

    init(_ dialect: Dialect, _ migrations: [Migration]) {
        self.dialect = dialect
        self.migrations = migrations
    }

    var latest: Int64 { migrations.last?.version ?? 0 }

    /// Whether the table of versions is there.
    var isThere: Reading<Bool> {
        let text =
            switch dialect {
            case .sqlite: "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'martlet_schema'"
            case .postgresql: "SELECT 1 WHERE to_regclass('martlet_schema') IS NOT NULL"
            }
        return Reading(queries: [Query(.plain(text))]) { answers in !answers[0].isEmpty }
    }

    /// The version of a database that has the table.
    var version: Reading<Int64> {
        Reading(queries: [Schema.readVersion]) { answers throws(AccountError) in try Schema.version(answers[0]) }
    }

    /// Brings a database up to date, whatever others do at the same time.
    var upgrade: Step<Void> {
        var queries = [Query(.plain(Schema.table(dialect)))]
        if dialect == .postgresql {
            // Another instance may be at it, and a large table takes its time.
            let patience = ["statement_timeout", "lock_timeout"].map { Query(.plain("SET LOCAL \($0) = 0")) }
            queries = patience + [Query(.lock, .text("martlet schema"))] + queries
        }
        queries.append(Schema.readVersion)
        let (migrations, latest) = (migrations, latest)
        return .run(queries) { answers throws(AccountError) in
            let version = try Schema.version(answers.rows.last ?? [])
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
        let words = Words(dialect)
        return [
            """
            CREATE TABLE accounts (
                subject \(words.key) PRIMARY KEY NOT NULL,
                created_at \(words.integer) NOT NULL,
                kept_claims \(words.text) NOT NULL
            )\(words.strict)
            """,
            """
            CREATE TABLE identities (
                id \(words.key) PRIMARY KEY NOT NULL,
                account \(words.key) NOT NULL REFERENCES accounts (subject),
                provider \(words.key) NOT NULL,
                subject \(words.key) NOT NULL,
                created_at \(words.integer) NOT NULL,
                sealed_refresh_token \(words.bytes),
                UNIQUE (account, provider)
            )\(words.strict)
            """,
            """
            CREATE TABLE identity_subjects (
                provider \(words.key) NOT NULL,
                subject \(words.key) NOT NULL,
                identity \(words.key) NOT NULL REFERENCES identities (id) ON DELETE CASCADE,
                PRIMARY KEY (provider, subject)
            )\(words.strict)
            """,
            "CREATE INDEX identity_subjects_identity ON identity_subjects (identity)",
        ]
    }

    private static func userTables(_ dialect: Dialect) -> [String] {
        let words = Words(dialect)
        return [
            """
            CREATE TABLE users (
                key \(words.key) PRIMARY KEY NOT NULL,
                name \(words.text) NOT NULL,
                hash \(words.text) NOT NULL,
                disabled \(words.integer) NOT NULL CHECK (disabled IN (0, 1)),
                created_at \(words.integer) NOT NULL,
                changed_at \(words.integer) NOT NULL
            )\(words.strict)
            """
        ]
    }

    /// Null for identities that were there before, until the next login.
    private static func loginTimes(_ dialect: Dialect) -> [String] {
        ["ALTER TABLE identities ADD COLUMN last_login_at \(Words(dialect).integer)"]
    }

    /// The same types under the names that each database has for them.
    private struct Words {
        let text: String
        /// Text that is compared and ordered by its bytes.
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
