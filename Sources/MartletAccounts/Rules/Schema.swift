/// One forward migration of the schema; never changed once released.
struct Migration: Sendable {
    let version: Int64
    let statements: [String]
}

/// The database schema and its migrations.
///
/// `martlet_schema` lists the applied versions. The version after the latest one that this program knows is accepted:
/// during a rolling upgrade older programs run on the schema of the next release, so each migration keeps the statements
/// of the release before working. A still newer version is rejected.
struct Schema: Sendable {
    let migrations: [Migration]
    let dialect: Dialect

    init(_ dialect: Dialect) { self.init(dialect, Schema.migrations(dialect)) }

    init(_ dialect: Dialect, _ migrations: [Migration]) {
        self.dialect = dialect
        self.migrations = migrations
    }

    var latest: Int64 { migrations.last?.version ?? 0 }
    /// The newest version that this program runs on.
    var latestAccepted: Int64 { latest + 1 }

    /// Whether the table of versions exists.
    var exists: ReadOperation<Bool> {
        let text =
            switch dialect {
            case .sqlite: "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'martlet_schema'"
            case .postgresql: "SELECT 1 WHERE to_regclass('martlet_schema') IS NOT NULL"
            }
        return ReadOperation(queries: [Query(.plain(text))]) { results in !results[0].isEmpty }
    }

    /// Whether the user of a PostgreSQL connection may create tables where they belong.
    static let mayCreate = ReadOperation<Bool>(
        queries: [Query(.plain("SELECT 1 WHERE has_schema_privilege(current_schema(), 'CREATE')"))]
    ) { results in !results[0].isEmpty }

    /// The schema version of a database that has the table.
    var version: ReadOperation<Int64> {
        ReadOperation(queries: [Schema.readVersion]) { results throws(AccountError) in try Schema.version(results[0]) }
    }

    /// Applies all pending migrations and returns the version before; safe to run concurrently.
    var upgrade: TransactionStep<Int64> {
        var queries = [Query(.plain(Schema.table(dialect)))]
        if dialect == .postgresql {
            // Large tables take long. The wait for another instance and for tables in use is short, because calls of
            // others wait behind it, and is retried.
            let timeouts = ["statement_timeout = '600s'", "lock_timeout = '3s'"].map {
                Query(.plain("SET LOCAL \($0)"))
            }
            queries = timeouts + [Query(.lock, .text("martlet schema"))] + queries
        }
        queries.append(Schema.readVersion)
        let (migrations, latestAccepted) = (migrations, latestAccepted)
        return .run(queries) { results throws(AccountError) in
            let version = try Schema.version(results.rows.last ?? [])
            guard version <= latestAccepted else { throw .schemaNewer }
            var pending: [Query] = []
            for migration in migrations where migration.version > version {
                pending += migration.statements.map { Query(.plain($0)) }
                let insertion = "INSERT INTO martlet_schema (version) VALUES (\(migration.version))"
                pending.append(Query(.plain(insertion)))
            }
            return .commit(pending) { _ in version }
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
            Migration(version: 4, statements: outboxTables(dialect)),
            Migration(version: 5, statements: disabledAccounts(dialect)),
            Migration(version: 6, statements: accountClaims(dialect)),
            Migration(version: 7, statements: ["CREATE INDEX users_disabled ON users (key) WHERE disabled = 1"]),
            Migration(version: 8, statements: passwordLinks(dialect)),
            Migration(version: 9, statements: identityStates(dialect)),
            Migration(version: 10, statements: endedSessions(dialect)),
            Migration(version: 11, statements: identityTransfers(dialect)),
            Migration(version: 12, statements: emailDigests(dialect)),
            Migration(version: 13, statements: profileClaims(dialect)),
            Migration(version: 14, statements: keyTables(dialect)),
            Migration(version: 15, statements: addressProofs(dialect)),
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

    /// Null for accounts that are active.
    private static func disabledAccounts(_ dialect: Dialect) -> [String] {
        ["ALTER TABLE accounts ADD COLUMN disabled_at \(ColumnTypes(dialect).integer)"]
    }

    /// States and grants of identities, notifications about them, and the work that is left of changes.
    private static func identityStates(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        let columns = [
            // Never used.
            "ALTER TABLE identities DROP COLUMN sealed_refresh_token",
            // Null until something is known of the identity at its issuer.
            "ALTER TABLE identities ADD COLUMN state \(types.integer)",
            "ALTER TABLE identities ADD COLUMN state_at \(types.integer)",
            "ALTER TABLE identities ADD COLUMN confirmed_at \(types.integer)",
            "ALTER TABLE identities ADD COLUMN revoked_at \(types.integer)",
            "ALTER TABLE identities ADD COLUMN notified_at \(types.integer)",
            "ALTER TABLE identities ADD COLUMN check_at \(types.integer)",
            "CREATE INDEX identities_check ON identities (provider, check_at)",
            // Null for accounts whose deletion was not requested.
            "ALTER TABLE accounts ADD COLUMN deletion_at \(types.integer)",
            "ALTER TABLE accounts ADD COLUMN deletion_reason \(types.text)",
            "ALTER TABLE accounts ADD COLUMN deletion_announced \(types.integer)",
            "ALTER TABLE accounts ADD COLUMN deleted_at \(types.integer)",
        ]
        return columns + lifeTables(types)
    }

    private static func lifeTables(_ types: ColumnTypes) -> [String] {
        [
            """
            CREATE TABLE grants (
                identity \(types.key) NOT NULL REFERENCES identities (id) ON DELETE CASCADE,
                client \(types.key) NOT NULL,
                key_id \(types.key) NOT NULL,
                token \(types.text) NOT NULL,
                PRIMARY KEY (identity, client)
            )\(types.strict)
            """,
            "CREATE INDEX grants_key ON grants (key_id)",
            """
            CREATE TABLE grant_keys (
                key_id \(types.key) PRIMARY KEY NOT NULL,
                canary \(types.text) NOT NULL
            )\(types.strict)
            """,
            """
            CREATE TABLE notifications (
                provider \(types.key) NOT NULL,
                id \(types.key) NOT NULL,
                type \(types.text) NOT NULL,
                subject \(types.key) NOT NULL,
                event_at \(types.integer) NOT NULL,
                received_at \(types.integer) NOT NULL,
                outcome \(types.text) NOT NULL,
                PRIMARY KEY (provider, id)
            )\(types.strict)
            """,
            "CREATE INDEX notifications_received ON notifications (received_at)",
            """
            CREATE TABLE jobs (
                number \(types.serial),
                kind \(types.text) NOT NULL,
                account \(types.key) NOT NULL,
                provider \(types.key) NOT NULL,
                data \(types.text) NOT NULL,
                attempts \(types.integer) NOT NULL,
                due_at \(types.integer) NOT NULL,
                created_at \(types.integer) NOT NULL,
                error \(types.text)
            )\(types.strict)
            """,
            "CREATE INDEX jobs_due ON jobs (due_at, number)",
            "CREATE INDEX jobs_account ON jobs (account, kind)",
        ]
    }

    /// The sessions whose end was reported, so that no other reports it again.
    private static func endedSessions(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        return [
            """
            CREATE TABLE ended_sessions (
                id \(types.key) PRIMARY KEY NOT NULL,
                ended_at \(types.integer) NOT NULL
            )\(types.strict)
            """,
            "CREATE INDEX ended_sessions_age ON ended_sessions (ended_at)",
        ]
    }

    /// The last transfer of an identity to another team of developers; `done_at` is null until its subject there is
    /// known.
    private static func identityTransfers(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        return [
            """
            CREATE TABLE identity_transfers (
                identity \(types.key) PRIMARY KEY NOT NULL REFERENCES identities (id) ON DELETE CASCADE,
                provider \(types.key) NOT NULL,
                transfer_subject \(types.key) NOT NULL,
                old_subject \(types.key) NOT NULL,
                from_team \(types.key) NOT NULL,
                to_team \(types.key) NOT NULL,
                exported_at \(types.integer) NOT NULL,
                done_at \(types.integer),
                UNIQUE (provider, transfer_subject)
            )\(types.strict)
            """,
            "CREATE INDEX identity_transfers_team ON identity_transfers (provider, to_team, identity)",
        ]
    }

    /// Null until a login brings an address.
    private static func emailDigests(_ dialect: Dialect) -> [String] {
        ["ALTER TABLE identities ADD COLUMN email_digest \(ColumnTypes(dialect).text)"]
    }

    /// What users say of themselves; null until they do.
    private static func profileClaims(_ dialect: Dialect) -> [String] {
        ["ALTER TABLE accounts ADD COLUMN profile_claims \(ColumnTypes(dialect).text)"]
    }

    /// API keys; `version` is the highest of the provider when a key was added, rotated or revoked.
    private static func keyTables(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        return [
            """
            CREATE TABLE api_keys (
                provider \(types.key) NOT NULL,
                id \(types.key) NOT NULL,
                digest \(types.text) NOT NULL,
                previous_digest \(types.text),
                previous_until \(types.integer),
                subject \(types.key) NOT NULL,
                is_account \(types.integer) NOT NULL CHECK (is_account IN (0, 1)),
                claims \(types.text) NOT NULL,
                scopes \(types.text) NOT NULL,
                created_at \(types.integer) NOT NULL,
                rotated_at \(types.integer),
                expires_at \(types.integer),
                revoked_at \(types.integer),
                last_used_at \(types.integer),
                version \(types.integer) NOT NULL,
                PRIMARY KEY (provider, id)
            )\(types.strict)
            """,
            "CREATE INDEX api_keys_version ON api_keys (provider, version)",
            "CREATE INDEX api_keys_account ON api_keys (subject) WHERE is_account = 1",
        ]
    }

    /// `claims` is what operators have set, with null for what they have removed; `rule_claims` what rules have set;
    /// `account_claims` the values of both together, by which accounts are found.
    private static func accountClaims(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        return [
            "ALTER TABLE accounts ADD COLUMN claims \(types.text)",
            "ALTER TABLE accounts ADD COLUMN rule_claims \(types.text)",
            "ALTER TABLE accounts ADD COLUMN claims_version \(types.integer) NOT NULL DEFAULT 0",
            "ALTER TABLE identities ADD COLUMN claims \(types.text)",
            """
            CREATE TABLE account_claims (
                account \(types.key) NOT NULL REFERENCES accounts (subject) ON DELETE CASCADE,
                name \(types.key) NOT NULL,
                value \(types.key) NOT NULL,
                PRIMARY KEY (account, name, value)
            )\(types.strict)
            """,
            "CREATE INDEX account_claims_value ON account_claims (name, value, account)",
            "CREATE INDEX accounts_disabled ON accounts (subject) WHERE disabled_at IS NOT NULL",
        ]
    }

    /// One-time links, and what users said of themselves when they registered; null for users added by an operator.
    private static func passwordLinks(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        return [
            """
            CREATE TABLE password_links (
                number \(types.serial),
                digest \(types.key) NOT NULL UNIQUE,
                purpose \(types.integer) NOT NULL CHECK (purpose IN (1, 2)),
                provider \(types.key) NOT NULL,
                address \(types.key) NOT NULL,
                hash \(types.text) NOT NULL,
                claims \(types.text) NOT NULL,
                created_at \(types.integer) NOT NULL,
                expires_at \(types.integer) NOT NULL
            )\(types.strict)
            """,
            "CREATE INDEX password_links_address ON password_links (address, created_at)",
            "CREATE INDEX password_links_age ON password_links (created_at)",
            "ALTER TABLE users ADD COLUMN claims \(types.text)",
        ]
    }

    /// Since when a name is known to be its user's mailbox, and an account the user's alone; null until it is.
    ///
    /// Of users that were there before, those are known who have used a link of a registration. The network of a link's
    /// request is stored as a digest. `departures` has the identities that have left their accounts.
    private static func addressProofs(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        return [
            "ALTER TABLE users ADD COLUMN proved_at \(types.integer)",
            "UPDATE users SET proved_at = created_at WHERE claims LIKE '%\"email_verified\":true%'",
            "ALTER TABLE accounts ADD COLUMN reclaimed_at \(types.integer)",
            "ALTER TABLE password_links ADD COLUMN network \(types.text)",
            "ALTER TABLE password_links ADD COLUMN neighborhood \(types.text)",
            """
            CREATE TABLE departures (
                provider \(types.key) NOT NULL,
                subject \(types.key) NOT NULL,
                departed_at \(types.integer) NOT NULL,
                PRIMARY KEY (provider, subject)
            )\(types.strict)
            """,
            "CREATE INDEX departures_age ON departures (departed_at)",
        ]
    }

    private static func outboxTables(_ dialect: Dialect) -> [String] {
        let types = ColumnTypes(dialect)
        return [
            """
            CREATE TABLE events (
                id \(types.key) PRIMARY KEY NOT NULL,
                type \(types.text) NOT NULL,
                subject \(types.key) NOT NULL,
                created_at \(types.integer) NOT NULL,
                data \(types.text) NOT NULL
            )\(types.strict)
            """,
            """
            CREATE TABLE deliveries (
                number \(types.serial),
                hook \(types.key) NOT NULL,
                event \(types.key) NOT NULL REFERENCES events (id) ON DELETE CASCADE,
                subject \(types.key) NOT NULL,
                state \(types.integer) NOT NULL CHECK (state IN (0, 1)),
                attempts \(types.integer) NOT NULL,
                due_at \(types.integer) NOT NULL,
                error \(types.text)
            )\(types.strict)
            """,
            "CREATE INDEX deliveries_due ON deliveries (hook, state, due_at, number)",
            "CREATE INDEX deliveries_subject ON deliveries (hook, subject, state, number)",
            "CREATE INDEX deliveries_event ON deliveries (event)",
            """
            CREATE TABLE leases (
                name \(types.key) PRIMARY KEY NOT NULL,
                owner \(types.text) NOT NULL,
                expires_at \(types.integer) NOT NULL
            )\(types.strict)
            """,
        ]
    }

    /// The column types of each database.
    private struct ColumnTypes {
        let text: String
        /// Text compared and ordered by its bytes.
        let key: String
        let integer: String
        let bytes: String
        /// A primary key whose numbers ascend and are never used again.
        let serial: String
        let strict: String

        init(_ dialect: Dialect) {
            switch dialect {
            case .sqlite:
                (text, key, integer, bytes, strict) = ("TEXT", "TEXT", "INTEGER", "BLOB", " STRICT")
                serial = "INTEGER PRIMARY KEY AUTOINCREMENT"
            case .postgresql:
                (text, key, integer, bytes, strict) = ("text", "text COLLATE \"C\"", "bigint", "bytea", "")
                serial = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
            }
        }
    }
}
