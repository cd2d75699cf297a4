/// The SQL statements of transfers of identities; see ``Statement``.
enum TransferStatement {
    private static let columns = """
        SELECT i.id, i.account, i.subject, i.state, t.transfer_subject, t.from_team, t.to_team, t.old_subject, \
        t.done_at
        """
    private static let accounts = "JOIN accounts a ON a.subject = i.account AND a.deleted_at IS NULL"
    private static let transfers = "LEFT JOIN identity_transfers t ON t.identity = i.id"

    static let identities = Statement(
        """
        \(columns) FROM identities i \(accounts) \(transfers) \
        WHERE i.provider = $1 AND i.id > $2 ORDER BY i.id LIMIT $3
        """)
    static let identitiesOfTeam = Statement(
        """
        \(columns) FROM identity_transfers t JOIN identities i ON i.id = t.identity \(accounts) \
        WHERE t.provider = $1 AND t.to_team = $4 AND t.identity > $2 ORDER BY t.identity LIMIT $3
        """)
    static let identityOfSubject = Statement(
        """
        \(columns) FROM identity_subjects s JOIN identities i ON i.id = s.identity \(accounts) \(transfers) \
        WHERE s.provider = $1 AND s.subject = $2
        """)

    static let lockIdentity = Statement("SELECT subject, state FROM identities WHERE id = $1", locks: true)
    static let transferOwner = Statement(
        "SELECT identity FROM identity_transfers WHERE provider = $1 AND transfer_subject = $2")
    static let putTransfer = Statement(
        """
        INSERT INTO identity_transfers \
        (identity, provider, transfer_subject, old_subject, from_team, to_team, exported_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7) \
        ON CONFLICT (identity) DO UPDATE SET transfer_subject = excluded.transfer_subject, \
        old_subject = excluded.old_subject, from_team = excluded.from_team, to_team = excluded.to_team, \
        exported_at = excluded.exported_at, done_at = NULL
        """)
    static let markExported = Statement("UPDATE identities SET state = 4, state_at = $2, check_at = NULL WHERE id = $1")

    static let subjectOwner = Statement("SELECT identity FROM identity_subjects WHERE provider = $1 AND subject = $2")
    static let lockTransfer = Statement { dialect in
        """
        SELECT t.identity, t.from_team, t.to_team, t.done_at, i.account, i.state, a.deleted_at \
        FROM identity_transfers t JOIN identities i ON i.id = t.identity JOIN accounts a ON a.subject = i.account \
        WHERE t.provider = $1 AND t.transfer_subject = $2\(dialect == .postgresql ? " FOR UPDATE OF t, i" : "")
        """
    }
    static let addSubject = Statement(
        """
        INSERT INTO identity_subjects (provider, subject, identity) VALUES ($1, $2, $3) \
        ON CONFLICT (provider, subject) DO NOTHING
        """)
    static let rekey = Statement(
        "UPDATE identities SET subject = $2, state = 1, state_at = $3, check_at = NULL WHERE id = $1")
    static let finish = Statement("UPDATE identity_transfers SET done_at = $2 WHERE identity = $1")
}
