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

    case findUser
    case users
    case addUser
    case setHash
    case replaceHash
    case setDisabled
    case removeUser

    /// Literal SQL, for the schema; never prepared.
    case plain(String)

    /// The name of the prepared statement; `nil` if it is not prepared.
    var name: String? {
        if case .plain = self { nil } else { "martlet_\(self)" }
    }

    /// The SQL text.
    func text(_ dialect: Dialect) -> String {
        let forUpdate = dialect == .postgresql ? " FOR UPDATE" : ""
        switch self {
        case .plain(let text): return text
        case .findSubject: return Statement.found
        case .lockSubject: return Statement.found + forUpdate
        case .lockAccount: return "SELECT kept_claims FROM accounts WHERE subject = $1" + forUpdate
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
        case .findUser: "SELECT \(Statement.userColumns) FROM users WHERE key = $1"
        case .users: "SELECT \(Statement.userColumns) FROM users ORDER BY key"
        case .addUser:
            """
            INSERT INTO users (key, name, hash, disabled, created_at, changed_at) VALUES ($1, $2, $3, $4, $5, $5) \
            ON CONFLICT (key) DO NOTHING RETURNING key
            """
        case .setHash: "UPDATE users SET hash = $2, changed_at = $3 WHERE key = $1 RETURNING key"
        case .replaceHash:
            "UPDATE users SET hash = $3, changed_at = $4 WHERE key = $1 AND hash = $2 RETURNING key"
        case .setDisabled: "UPDATE users SET disabled = $2, changed_at = $3 WHERE key = $1 RETURNING key"
        case .removeUser: "DELETE FROM users WHERE key = $1 RETURNING key"
        default: ""
        }
    }

    private static let userColumns = "key, name, hash, disabled"

    private static let found = """
        SELECT s.subject, i.id, i.account, i.subject, a.kept_claims FROM identity_subjects s \
        JOIN identities i ON i.id = s.identity JOIN accounts a ON a.subject = i.account \
        WHERE s.provider = $1 AND s.subject = $2
        """

    private static let listed = """
        SELECT s.subject, i.id, i.provider, i.subject, i.created_at, i.last_login_at FROM identity_subjects s \
        JOIN identities i ON i.id = s.identity JOIN accounts a ON a.subject = i.account \
        WHERE i.account = $1 ORDER BY i.created_at, i.id, s.subject
        """
}
