/// The SQL statements, shared by both databases.
///
/// `$1` is a parameter; rows are locked if the database supports it.
enum Statement: Sendable, Hashable {
    /// An advisory lock on a text until the end of the transaction; PostgreSQL only.
    case lock

    case findSubject
    /// Like `findSubject`, and locks the rows until the end of the transaction.
    case lockSubject
    case lockAccount
    case lockIdentities
    case identities

    case addAccount
    case addIdentity
    case addSubject
    case setMainSubject
    case setStoredClaims
    case removeIdentity
    case noteLogin
    /// What a login with an address compares; locks the row until the end of the transaction.
    case lockEmail
    case setEmail

    case findUser
    case users
    case disabledUsers
    case addUser
    /// The same, and locks the row until the end of the transaction.
    case lockUser
    case setHash
    case replaceHash
    /// Sets the hash and the claims of a user, whose address is proved.
    case proveUser
    case setProved
    case setDisabled
    case removeUser

    case account
    case accounts
    case disabledAccounts
    case accountsWithClaim
    case disabledAccountsWithClaim
    case disableAccount
    case enableAccount

    case claims
    /// What a user says of themselves.
    case profile
    /// The claims of an account; locks the row until the end of the transaction.
    case lockClaims
    case setClaims
    case countClaimsChange
    /// The same, unless the account never had claims.
    case countClaimsRemoval
    case removeClaimValues
    case addClaimValue

    case outbox(OutboxStatement)
    case life(LifeStatement)
    case link(LinkStatement)
    case key(KeyStatement)
    case transfer(TransferStatement)
    case proof(ProofStatement)

    /// Literal SQL, for the schema and transactions; never kept.
    case plain(String)

    /// Whether SQLite keeps the prepared statement.
    var isKept: Bool {
        if case .plain = self { false } else { true }
    }

    /// The SQL text.
    func text(_ dialect: Dialect) -> String {
        let forUpdate = dialect == .postgresql ? " FOR UPDATE" : ""
        switch self {
        case .plain(let text): return text
        case .outbox(let statement): return statement.text(dialect)
        case .life(let statement): return statement.text(dialect)
        case .link(let statement): return statement.text(dialect)
        case .key(let statement): return statement.text
        case .transfer(let statement): return statement.text(dialect)
        case .proof(let statement): return statement.text
        case .findSubject: return Statement.found
        case .lockSubject: return Statement.found + forUpdate
        case .lockAccount: return "SELECT kept_claims, reclaimed_at FROM accounts WHERE subject = $1" + forUpdate
        case .lockUser: return "SELECT \(Statement.userColumns) FROM users WHERE key = $1" + forUpdate
        case .lockClaims:
            return "SELECT claims, rule_claims, profile_claims, deleted_at FROM accounts WHERE subject = $1" + forUpdate
        case .lockEmail:
            return "SELECT id, email_digest, last_login_at FROM identities WHERE account = $1 AND provider = $2"
                + forUpdate
        case .identities: return Statement.listed
        case .lockIdentities: return Statement.listed + forUpdate
        default: return fixedText
        }
    }

    private var fixedText: String {
        switch self {
        case .lock: "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
        case .addAccount: "INSERT INTO accounts (subject, created_at, kept_claims) VALUES ($1, $2, $3)"
        case .addIdentity:
            "INSERT INTO identities (id, account, provider, subject, created_at) VALUES ($1, $2, $3, $4, $5)"
        case .addSubject: "INSERT INTO identity_subjects (provider, subject, identity) VALUES ($1, $2, $3)"
        case .setMainSubject: "UPDATE identities SET subject = $2 WHERE id = $1"
        case .setStoredClaims: "UPDATE accounts SET kept_claims = $2 WHERE subject = $1"
        case .removeIdentity: "DELETE FROM identities WHERE id = $1"
        case .noteLogin:
            """
            UPDATE identities SET last_login_at = $3 \
            WHERE account = $1 AND provider = $2 AND coalesce(last_login_at, 0) < $3
            """
        case .setEmail: "UPDATE identities SET email_digest = $2 WHERE id = $1"
        case .account: "SELECT \(Statement.accountColumns) FROM accounts a WHERE a.subject = $1"
        case .accounts, .disabledAccounts, .accountsWithClaim, .disabledAccountsWithClaim: listText
        case .disableAccount:
            """
            UPDATE accounts SET disabled_at = coalesce(disabled_at, $2), claims_version = claims_version + 1 \
            WHERE subject = $1 AND deleted_at IS NULL RETURNING subject
            """
        case .enableAccount:
            """
            UPDATE accounts SET disabled_at = NULL, claims_version = claims_version + 1 \
            WHERE subject = $1 AND deleted_at IS NULL RETURNING subject
            """
        case .claims, .profile, .setClaims, .countClaimsChange, .countClaimsRemoval,
            .removeClaimValues, .addClaimValue:
            claimText
        default: userText
        }
    }

    private var userText: String {
        switch self {
        case .findUser: "SELECT \(Statement.userColumns) FROM users WHERE key = $1"
        case .users: "SELECT \(Statement.userColumns) FROM users WHERE key > $1 ORDER BY key LIMIT $2"
        case .disabledUsers:
            "SELECT \(Statement.userColumns) FROM users WHERE key > $1 AND disabled = 1 ORDER BY key LIMIT $2"
        case .addUser:
            """
            INSERT INTO users (key, name, hash, disabled, created_at, changed_at, claims, proved_at) \
            VALUES ($1, $2, $3, $4, $5, $5, $6, nullif(CAST($7 AS bigint), -1)) \
            ON CONFLICT (key) DO NOTHING RETURNING key
            """
        case .setHash: "UPDATE users SET hash = $2, changed_at = $3 WHERE key = $1 RETURNING key"
        case .replaceHash:
            "UPDATE users SET hash = $3, changed_at = $4 WHERE key = $1 AND hash = $2 RETURNING key"
        case .proveUser:
            """
            UPDATE users SET hash = $2, changed_at = $3, claims = $4, proved_at = coalesce(proved_at, $3) \
            WHERE key = $1
            """
        case .setProved: "UPDATE users SET proved_at = coalesce(proved_at, $2) WHERE key = $1 RETURNING key"
        case .setDisabled: "UPDATE users SET disabled = $2, changed_at = $3 WHERE key = $1 RETURNING key"
        case .removeUser: "DELETE FROM users WHERE key = $1 RETURNING key"
        default: ""
        }
    }

    /// A page of accounts; each has an index in this order.
    private var listText: String {
        let from = "SELECT \(Statement.accountColumns) FROM accounts a"
        let page = "a.subject > $1 ORDER BY a.subject LIMIT $2"
        let claim = "FROM account_claims c JOIN accounts a ON a.subject = c.account WHERE c.name = $3 AND c.value = $4"
        let claimPage = "c.account > $1 ORDER BY c.account LIMIT $2"
        return switch self {
        case .disabledAccounts: "\(from) WHERE a.disabled_at IS NOT NULL AND \(page)"
        case .accountsWithClaim: "SELECT \(Statement.accountColumns) \(claim) AND \(claimPage)"
        case .disabledAccountsWithClaim:
            "SELECT \(Statement.accountColumns) \(claim) AND a.disabled_at IS NOT NULL AND \(claimPage)"
        default: "\(from) WHERE \(page)"
        }
    }

    private var claimText: String {
        switch self {
        case .claims:
            """
            SELECT a.claims_version, a.claims, a.rule_claims, a.profile_claims, i.provider, i.claims, i.state, \
            a.disabled_at FROM accounts a \
            LEFT JOIN identities i ON i.account = a.subject AND (i.claims IS NOT NULL OR i.state IS NOT NULL) \
            WHERE a.subject = $1
            """
        case .profile: "SELECT profile_claims FROM accounts WHERE subject = $1"
        case .setClaims:
            """
            UPDATE accounts SET claims = $2, rule_claims = $3, profile_claims = $4, \
            claims_version = claims_version + 1 WHERE subject = $1
            """
        case .countClaimsChange: "UPDATE accounts SET claims_version = claims_version + 1 WHERE subject = $1"
        case .countClaimsRemoval:
            "UPDATE accounts SET claims_version = claims_version + 1 WHERE subject = $1 AND claims_version > 0"
        case .removeClaimValues: "DELETE FROM account_claims WHERE account = $1"
        case .addClaimValue:
            "INSERT INTO account_claims (account, name, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
        default: ""
        }
    }

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
}
