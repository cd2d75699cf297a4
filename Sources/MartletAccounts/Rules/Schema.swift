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
        let types = ColumnTypes(dialect)
        let tables = [accountTables, identityTables, userTables, keyTables, eventTables, jobTables]
        return [Migration(version: 1, statements: tables.flatMap { $0(types) })]
    }

    /// Accounts and their identities.
    ///
    /// In `accounts`, `claims` is what operators have set, with null for what they have removed; `rule_claims` what rules
    /// have set; `profile_claims` what users say of themselves; `account_claims` has the values of all of them together,
    /// by which accounts are found. `disabled_at` is null for accounts that are active, `deletion_at` for those whose
    /// deletion was not requested, and `reclaimed_at` until an account is known to be its user's alone. `departures` has
    /// the identities that have left their accounts.
    private static func accountTables(_ types: ColumnTypes) -> [String] {
        [
            """
            CREATE TABLE accounts (
                subject \(types.key) PRIMARY KEY NOT NULL,
                created_at \(types.integer) NOT NULL,
                kept_claims \(types.text) NOT NULL,
                disabled_at \(types.integer),
                claims \(types.text),
                rule_claims \(types.text),
                claims_version \(types.integer) NOT NULL DEFAULT 0,
                deletion_at \(types.integer),
                deletion_reason \(types.text),
                deletion_announced \(types.integer),
                deleted_at \(types.integer),
                profile_claims \(types.text),
                reclaimed_at \(types.integer)
            )\(types.strict)
            """,
            "CREATE INDEX accounts_disabled ON accounts (subject) WHERE disabled_at IS NOT NULL",
            """
            CREATE TABLE account_claims (
                account \(types.key) NOT NULL REFERENCES accounts (subject) ON DELETE CASCADE,
                name \(types.key) NOT NULL,
                value \(types.key) NOT NULL,
                PRIMARY KEY (account, name, value)
            )\(types.strict)
            """,
            "CREATE INDEX account_claims_value ON account_claims (name, value, account)",
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

    /// Identities, their grants, and their last transfers to another team of developers.
    ///
    /// `last_login_at` and `email_digest` are null until a login, the states until something is known of the identity at
    /// its issuer, and `done_at` until its subject at the other team is known.
    private static func identityTables(_ types: ColumnTypes) -> [String] {
        [
            """
            CREATE TABLE identities (
                id \(types.key) PRIMARY KEY NOT NULL,
                account \(types.key) NOT NULL REFERENCES accounts (subject),
                provider \(types.key) NOT NULL,
                subject \(types.key) NOT NULL,
                created_at \(types.integer) NOT NULL,
                last_login_at \(types.integer),
                claims \(types.text),
                state \(types.integer),
                state_at \(types.integer),
                confirmed_at \(types.integer),
                revoked_at \(types.integer),
                notified_at \(types.integer),
                check_at \(types.integer),
                email_digest \(types.text),
                UNIQUE (account, provider)
            )\(types.strict)
            """,
            "CREATE INDEX identities_check ON identities (provider, check_at)",
            """
            CREATE TABLE identity_subjects (
                provider \(types.key) NOT NULL,
                subject \(types.key) NOT NULL,
                identity \(types.key) NOT NULL REFERENCES identities (id) ON DELETE CASCADE,
                PRIMARY KEY (provider, subject)
            )\(types.strict)
            """,
            "CREATE INDEX identity_subjects_identity ON identity_subjects (identity)",
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

    /// Users with passwords, and their one-time links.
    ///
    /// `claims` is what users said of themselves when they registered, null for users added by an operator. `proved_at`
    /// is null until a name is known to be its user's mailbox. The network of a link's request is stored as a digest.
    private static func userTables(_ types: ColumnTypes) -> [String] {
        [
            """
            CREATE TABLE users (
                key \(types.key) PRIMARY KEY NOT NULL,
                name \(types.text) NOT NULL,
                hash \(types.text) NOT NULL,
                disabled \(types.integer) NOT NULL CHECK (disabled IN (0, 1)),
                created_at \(types.integer) NOT NULL,
                changed_at \(types.integer) NOT NULL,
                claims \(types.text),
                proved_at \(types.integer)
            )\(types.strict)
            """,
            "CREATE INDEX users_disabled ON users (key) WHERE disabled = 1",
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
                expires_at \(types.integer) NOT NULL,
                network \(types.text),
                neighborhood \(types.text)
            )\(types.strict)
            """,
            "CREATE INDEX password_links_address ON password_links (address, created_at)",
            "CREATE INDEX password_links_age ON password_links (created_at)",
        ]
    }

    /// API keys, and the keys that grants are sealed with.
    ///
    /// `version` is the highest of the provider when a key was added, rotated or revoked.
    private static func keyTables(_ types: ColumnTypes) -> [String] {
        [
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
            """
            CREATE TABLE grant_keys (
                key_id \(types.key) PRIMARY KEY NOT NULL,
                canary \(types.text) NOT NULL
            )\(types.strict)
            """,
        ]
    }

    /// The outbox.
    private static func eventTables(_ types: ColumnTypes) -> [String] {
        [
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
        ]
    }

    /// Work that is left of changes and who does it, notifications about identities, and the sessions whose end was
    /// reported, so that no other reports it again.
    private static func jobTables(_ types: ColumnTypes) -> [String] {
        [
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
            """
            CREATE TABLE leases (
                name \(types.key) PRIMARY KEY NOT NULL,
                owner \(types.text) NOT NULL,
                expires_at \(types.integer) NOT NULL
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
            CREATE TABLE ended_sessions (
                id \(types.key) PRIMARY KEY NOT NULL,
                ended_at \(types.integer) NOT NULL
            )\(types.strict)
            """,
            "CREATE INDEX ended_sessions_age ON ended_sessions (ended_at)",
        ]
    }

    /// The column types of each database.
    private struct ColumnTypes {
        let text: String
        /// Text compared and ordered by its bytes.
        let key: String
        let integer: String
        /// A primary key whose numbers ascend and are never used again.
        let serial: String
        let strict: String

        init(_ dialect: Dialect) {
            switch dialect {
            case .sqlite:
                (text, key, integer, strict) = ("TEXT", "TEXT", "INTEGER", " STRICT")
                serial = "INTEGER PRIMARY KEY AUTOINCREMENT"
            case .postgresql:
                (text, key, integer, strict) = ("text", "text COLLATE \"C\"", "bigint", "")
                serial = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
            }
        }
    }
}
