/// The SQL statements of the first proof of an address; see ``Statement``.
enum ProofStatement {
    /// Removes what logins have stored in an account, and records since when it is its user's alone.
    static let reclaim = Statement("UPDATE accounts SET kept_claims = '{}', reclaimed_at = $2 WHERE subject = $1")
    /// The API keys of an account that are not revoked.
    static let keys = Statement(
        """
        SELECT provider, id FROM api_keys WHERE subject = $1 AND is_account = 1 AND revoked_at IS NULL \
        ORDER BY provider, id
        """)
    /// Records when the subject of an identity has left its account.
    static let noteDeparture = Statement(
        """
        INSERT INTO departures (provider, subject, departed_at) VALUES ($1, $2, $3) \
        ON CONFLICT (provider, subject) DO UPDATE SET departed_at = excluded.departed_at
        """)
    /// The same for all subjects of all identities of an account.
    static let noteDepartures = Statement(
        """
        INSERT INTO departures (provider, subject, departed_at) \
        SELECT s.provider, s.subject, CAST($2 AS bigint) FROM identity_subjects s \
        JOIN identities i ON i.id = s.identity WHERE i.account = $1 \
        ON CONFLICT (provider, subject) DO UPDATE SET departed_at = excluded.departed_at
        """)
    static let findDeparture = Statement("SELECT departed_at FROM departures WHERE provider = $1 AND subject = $2")
    static let removeDepartures = Statement("DELETE FROM departures WHERE departed_at < $1")
}
