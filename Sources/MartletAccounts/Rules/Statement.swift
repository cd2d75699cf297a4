/// An SQL statement, the same in both databases or with the text of each; `$1` is a parameter.
struct Statement: Sendable, Hashable {
    private let sqlite: String
    private let postgresql: String
    /// Whether SQLite keeps the prepared statement.
    let isKept: Bool

    init(isKept: Bool = true, _ text: (Dialect) -> String) {
        (sqlite, postgresql) = (text(.sqlite), text(.postgresql))
        self.isKept = isKept
    }

    /// - Parameter locks: whether PostgreSQL locks the rows until the end of the transaction; SQLite has one writer.
    init(_ text: String, locks: Bool = false) {
        self.init { dialect in text + (locks && dialect == .postgresql ? " FOR UPDATE" : "") }
    }

    /// Literal SQL, for the schema and transactions; never kept.
    static func plain(_ text: String) -> Statement { Statement(isKept: false) { _ in text } }

    func text(_ dialect: Dialect) -> String { dialect == .sqlite ? sqlite : postgresql }
}

/// The statements of accounts, users and claims.
extension Statement {
    /// An advisory lock on a text until the end of the transaction; PostgreSQL only.
    static let lock = Statement("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")

    static let findSubject = Statement(found)
    /// Like `findSubject`, and locks the rows until the end of the transaction.
    static let lockSubject = Statement(found, locks: true)
    static let lockAccount = Statement("SELECT kept_claims, reclaimed_at FROM accounts WHERE subject = $1", locks: true)
    static let lockIdentities = Statement(listed, locks: true)
    static let identities = Statement(listed)

    static let addAccount = Statement("INSERT INTO accounts (subject, created_at, kept_claims) VALUES ($1, $2, $3)")
    static let addIdentity = Statement(
        "INSERT INTO identities (id, account, provider, subject, created_at) VALUES ($1, $2, $3, $4, $5)")
    static let addSubject = Statement("INSERT INTO identity_subjects (provider, subject, identity) VALUES ($1, $2, $3)")
    static let setMainSubject = Statement("UPDATE identities SET subject = $2 WHERE id = $1")
    static let setStoredClaims = Statement("UPDATE accounts SET kept_claims = $2 WHERE subject = $1")
    static let removeIdentity = Statement("DELETE FROM identities WHERE id = $1")
    static let noteLogin = Statement(
        """
        UPDATE identities SET last_login_at = $3 \
        WHERE account = $1 AND provider = $2 AND coalesce(last_login_at, 0) < $3
        """)
    /// What a login with an address compares; locks the row until the end of the transaction.
    static let lockEmail = Statement(
        "SELECT id, email_digest, last_login_at FROM identities WHERE account = $1 AND provider = $2", locks: true)
    static let setEmail = Statement("UPDATE identities SET email_digest = $2 WHERE id = $1")

    static let findUser = Statement("SELECT \(userColumns) FROM users WHERE key = $1")
    static let users = Statement("SELECT \(userColumns) FROM users WHERE key > $1 ORDER BY key LIMIT $2")
    static let disabledUsers = Statement(
        "SELECT \(userColumns) FROM users WHERE key > $1 AND disabled = 1 ORDER BY key LIMIT $2")
    static let addUser = Statement(
        """
        INSERT INTO users (key, name, hash, disabled, created_at, changed_at, claims, proved_at) \
        VALUES ($1, $2, $3, $4, $5, $5, $6, nullif(CAST($7 AS bigint), -1)) \
        ON CONFLICT (key) DO NOTHING RETURNING key
        """)
    /// Like `findUser`, and locks the row until the end of the transaction.
    static let lockUser = Statement("SELECT \(userColumns) FROM users WHERE key = $1", locks: true)
    static let setHash = Statement("UPDATE users SET hash = $2, changed_at = $3 WHERE key = $1 RETURNING key")
    static let replaceHash = Statement(
        "UPDATE users SET hash = $3, changed_at = $4 WHERE key = $1 AND hash = $2 RETURNING key")
    /// Sets the hash and the claims of a user, whose address is proved.
    static let proveUser = Statement(
        """
        UPDATE users SET hash = $2, changed_at = $3, claims = $4, proved_at = coalesce(proved_at, $3) \
        WHERE key = $1
        """)
    static let setProved = Statement(
        "UPDATE users SET proved_at = coalesce(proved_at, $2) WHERE key = $1 RETURNING key")
    static let setDisabled = Statement("UPDATE users SET disabled = $2, changed_at = $3 WHERE key = $1 RETURNING key")
    static let removeUser = Statement("DELETE FROM users WHERE key = $1 RETURNING key")

    static let account = Statement("SELECT \(accountColumns) FROM accounts a WHERE a.subject = $1")
    // A page of accounts; each has an index in this order.
    static let accounts = Statement("SELECT \(accountColumns) FROM accounts a WHERE \(accountPage)")
    static let disabledAccounts = Statement(
        "SELECT \(accountColumns) FROM accounts a WHERE a.disabled_at IS NOT NULL AND \(accountPage)")
    static let accountsWithClaim = Statement("SELECT \(accountColumns) \(ofClaim) AND \(claimPage)")
    static let disabledAccountsWithClaim = Statement(
        "SELECT \(accountColumns) \(ofClaim) AND a.disabled_at IS NOT NULL AND \(claimPage)")
    static let disableAccount = Statement(
        """
        UPDATE accounts SET disabled_at = coalesce(disabled_at, $2), claims_version = claims_version + 1 \
        WHERE subject = $1 AND deleted_at IS NULL RETURNING subject
        """)
    static let enableAccount = Statement(
        """
        UPDATE accounts SET disabled_at = NULL, claims_version = claims_version + 1 \
        WHERE subject = $1 AND deleted_at IS NULL RETURNING subject
        """)

    static let claims = Statement(
        """
        SELECT a.claims_version, a.claims, a.rule_claims, a.profile_claims, i.provider, i.claims, i.state, \
        a.disabled_at FROM accounts a \
        LEFT JOIN identities i ON i.account = a.subject AND (i.claims IS NOT NULL OR i.state IS NOT NULL) \
        WHERE a.subject = $1
        """)
    /// What a user says of themselves.
    static let profile = Statement("SELECT profile_claims FROM accounts WHERE subject = $1")
    /// The claims of an account; locks the row until the end of the transaction.
    static let lockClaims = Statement(
        "SELECT claims, rule_claims, profile_claims, deleted_at FROM accounts WHERE subject = $1", locks: true)
    static let setClaims = Statement(
        """
        UPDATE accounts SET claims = $2, rule_claims = $3, profile_claims = $4, \
        claims_version = claims_version + 1 WHERE subject = $1
        """)
    static let countClaimsChange = Statement(
        "UPDATE accounts SET claims_version = claims_version + 1 WHERE subject = $1")
    /// The same, unless the account never had claims.
    static let countClaimsRemoval = Statement(
        "UPDATE accounts SET claims_version = claims_version + 1 WHERE subject = $1 AND claims_version > 0")
    static let removeClaimValues = Statement("DELETE FROM account_claims WHERE account = $1")
    static let addClaimValue = Statement(
        "INSERT INTO account_claims (account, name, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING")

    private static let accountColumns = """
        a.subject, a.created_at, a.disabled_at, a.kept_claims, a.claims, a.rule_claims, \
        a.deletion_at, a.deletion_reason, a.deleted_at, a.profile_claims
        """

    private static let userColumns = "key, name, hash, disabled, claims, proved_at"

    private static let found = """
        SELECT s.subject, i.id, i.account, i.subject, a.kept_claims, a.disabled_at, i.revoked_at, a.deletion_at, \
        a.claims_version, a.claims, a.rule_claims, a.profile_claims, \
        (SELECT d.departed_at FROM departures d WHERE d.provider = s.provider AND d.subject = s.subject) \
        FROM identity_subjects s \
        JOIN identities i ON i.id = s.identity JOIN accounts a ON a.subject = i.account \
        WHERE s.provider = $1 AND s.subject = $2
        """

    private static let listed = """
        SELECT s.subject, i.id, i.provider, i.subject, i.created_at, i.last_login_at FROM identity_subjects s \
        JOIN identities i ON i.id = s.identity JOIN accounts a ON a.subject = i.account \
        WHERE i.account = $1 ORDER BY i.created_at, i.id, s.subject
        """

    private static let accountPage = "a.subject > $1 ORDER BY a.subject LIMIT $2"
    private static let ofClaim =
        "FROM account_claims c JOIN accounts a ON a.subject = c.account WHERE c.name = $3 AND c.value = $4"
    private static let claimPage = "c.account > $1 ORDER BY c.account LIMIT $2"
}
