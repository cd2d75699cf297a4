/// The SQL statements of one-time links; see ``Statement``.
enum LinkStatement {
    /// Removes a limited number of links that no longer count.
    static let purge = Statement { dialect in
        """
        DELETE FROM password_links WHERE number IN (SELECT number FROM password_links WHERE created_at <= $1 \
        ORDER BY number LIMIT 100\(dialect == .postgresql ? " FOR UPDATE SKIP LOCKED" : ""))
        """
    }
    /// When the links of an address were requested from a network and its neighborhood, the newest first.
    static let recent = Statement(
        """
        SELECT created_at, purpose, CASE WHEN network = $3 THEN 1 ELSE 0 END FROM password_links \
        WHERE address = $1 AND created_at > $2 AND (network = $3 OR neighborhood = $4) \
        ORDER BY created_at DESC, number DESC LIMIT $5
        """)
    static let add = Statement(
        """
        INSERT INTO password_links (digest, purpose, provider, address, hash, claims, created_at, expires_at, \
        network, neighborhood) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        """)
    /// Removes the oldest links beyond a maximum.
    static let trim = Statement(
        "DELETE FROM password_links WHERE number <= (SELECT max(number) FROM password_links) - $1")
    /// Removes an event if the second parameter is 1, so that both cases execute it.
    static let dropEvent = Statement("DELETE FROM events WHERE id = $1 AND CAST($2 AS bigint) = 1")
    static let find = Statement(
        "SELECT provider FROM password_links WHERE digest = $1 AND purpose = $2 AND expires_at > $3")
    /// Finds a valid link and locks it until the end of the transaction.
    static let take = Statement(
        """
        SELECT address, hash, claims FROM password_links \
        WHERE digest = $1 AND purpose = $2 AND expires_at > $3
        """, locks: true)
    /// Ends the links of an address for one purpose; they still count as mails.
    static let spend = Statement(
        "UPDATE password_links SET expires_at = 0, hash = '', claims = '' WHERE address = $1 AND purpose = $2")
}
