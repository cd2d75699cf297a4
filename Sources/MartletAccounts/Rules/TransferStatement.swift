/// The SQL statements of transfers of identities; see ``Statement``.
enum TransferStatement: Sendable, Hashable {
    case identities
    case identitiesOfTeam
    case identityOfSubject

    case lockIdentity
    case transferOwner
    case putTransfer
    case markExported

    case subjectOwner
    case lockTransfer
    case addSubject
    case rekey
    case finish

    /// The SQL text.
    func text(_ dialect: Dialect) -> String {
        switch self {
        case .identities, .identitiesOfTeam, .identityOfSubject: listText
        case .lockIdentity:
            "SELECT subject, state FROM identities WHERE id = $1" + (dialect == .postgresql ? " FOR UPDATE" : "")
        case .lockTransfer:
            """
            SELECT t.identity, t.from_team, t.to_team, t.done_at, i.account, i.state, a.deleted_at \
            FROM identity_transfers t JOIN identities i ON i.id = t.identity JOIN accounts a ON a.subject = i.account \
            WHERE t.provider = $1 AND t.transfer_subject = $2
            """ + (dialect == .postgresql ? " FOR UPDATE OF t, i" : "")
        default: changeText
        }
    }

    private var listText: String {
        let columns = """
            SELECT i.id, i.account, i.subject, i.state, t.transfer_subject, t.from_team, t.to_team, t.old_subject, \
            t.done_at
            """
        let accounts = "JOIN accounts a ON a.subject = i.account AND a.deleted_at IS NULL"
        let transfers = "LEFT JOIN identity_transfers t ON t.identity = i.id"
        return switch self {
        case .identitiesOfTeam:
            """
            \(columns) FROM identity_transfers t JOIN identities i ON i.id = t.identity \(accounts) \
            WHERE t.provider = $1 AND t.to_team = $4 AND t.identity > $2 ORDER BY t.identity LIMIT $3
            """
        case .identityOfSubject:
            """
            \(columns) FROM identity_subjects s JOIN identities i ON i.id = s.identity \(accounts) \(transfers) \
            WHERE s.provider = $1 AND s.subject = $2
            """
        default:
            """
            \(columns) FROM identities i \(accounts) \(transfers) \
            WHERE i.provider = $1 AND i.id > $2 ORDER BY i.id LIMIT $3
            """
        }
    }

    private var changeText: String {
        switch self {
        case .transferOwner: "SELECT identity FROM identity_transfers WHERE provider = $1 AND transfer_subject = $2"
        case .putTransfer:
            """
            INSERT INTO identity_transfers \
            (identity, provider, transfer_subject, old_subject, from_team, to_team, exported_at) \
            VALUES ($1, $2, $3, $4, $5, $6, $7) \
            ON CONFLICT (identity) DO UPDATE SET transfer_subject = excluded.transfer_subject, \
            old_subject = excluded.old_subject, from_team = excluded.from_team, to_team = excluded.to_team, \
            exported_at = excluded.exported_at, done_at = NULL
            """
        case .markExported: "UPDATE identities SET state = 4, state_at = $2, check_at = NULL WHERE id = $1"
        case .subjectOwner: "SELECT identity FROM identity_subjects WHERE provider = $1 AND subject = $2"
        case .addSubject:
            """
            INSERT INTO identity_subjects (provider, subject, identity) VALUES ($1, $2, $3) \
            ON CONFLICT (provider, subject) DO NOTHING
            """
        case .rekey: "UPDATE identities SET subject = $2, state = 1, state_at = $3, check_at = NULL WHERE id = $1"
        case .finish: "UPDATE identity_transfers SET done_at = $2 WHERE identity = $1"
        default: ""
        }
    }
}
