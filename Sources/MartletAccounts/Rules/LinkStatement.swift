/// The SQL statements of one-time links, shared by both databases.
enum LinkStatement: Sendable, Hashable {
    /// Removes a limited number of links that no longer count.
    case purge
    /// When the links of an address were requested from a network and its neighborhood, the newest first.
    case recent
    case add
    /// Removes the oldest links beyond a maximum.
    case trim
    /// Removes an event if the second parameter is 1, so that both cases execute it.
    case dropEvent
    case find
    /// Finds a valid link and locks it until the end of the transaction.
    case take
    /// Ends the links of an address for one purpose; they still count as mails.
    case spend

    /// The SQL text.
    func text(_ dialect: Dialect) -> String {
        switch self {
        case .purge:
            """
            DELETE FROM password_links WHERE number IN (SELECT number FROM password_links WHERE created_at <= $1 \
            ORDER BY number LIMIT 100\(dialect == .postgresql ? " FOR UPDATE SKIP LOCKED" : ""))
            """
        case .recent:
            """
            SELECT created_at, purpose, CASE WHEN network = $3 THEN 1 ELSE 0 END FROM password_links \
            WHERE address = $1 AND created_at > $2 AND (network = $3 OR neighborhood = $4) \
            ORDER BY created_at DESC, number DESC LIMIT $5
            """
        case .add:
            """
            INSERT INTO password_links (digest, purpose, provider, address, hash, claims, created_at, expires_at, \
            network, neighborhood) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            """
        case .trim: "DELETE FROM password_links WHERE number <= (SELECT max(number) FROM password_links) - $1"
        case .dropEvent: "DELETE FROM events WHERE id = $1 AND CAST($2 AS bigint) = 1"
        case .find: "SELECT provider FROM password_links WHERE digest = $1 AND purpose = $2 AND expires_at > $3"
        case .take:
            """
            SELECT address, hash, claims FROM password_links \
            WHERE digest = $1 AND purpose = $2 AND expires_at > $3\(dialect == .postgresql ? " FOR UPDATE" : "")
            """
        case .spend:
            "UPDATE password_links SET expires_at = 0, hash = '', claims = '' WHERE address = $1 AND purpose = $2"
        }
    }
}
