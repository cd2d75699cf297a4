/// The SQL statements of the first proof of an address, shared by both databases.
enum ProofStatement: Sendable, Hashable {
    /// Removes what logins have stored in an account, and records since when it is its user's alone.
    case reclaim
    /// The API keys of an account that are not revoked.
    case keys
    /// Records when the subject of an identity has left its account.
    case noteDeparture
    /// The same for all subjects of all identities of an account.
    case noteDepartures
    case findDeparture
    case removeDepartures

    /// The SQL text.
    var text: String {
        switch self {
        case .reclaim: "UPDATE accounts SET kept_claims = '{}', reclaimed_at = $2 WHERE subject = $1"
        case .keys:
            """
            SELECT provider, id FROM api_keys WHERE subject = $1 AND is_account = 1 AND revoked_at IS NULL \
            ORDER BY provider, id
            """
        case .noteDeparture:
            """
            INSERT INTO departures (provider, subject, departed_at) VALUES ($1, $2, $3) \
            ON CONFLICT (provider, subject) DO UPDATE SET departed_at = excluded.departed_at
            """
        case .noteDepartures:
            """
            INSERT INTO departures (provider, subject, departed_at) \
            SELECT s.provider, s.subject, CAST($2 AS bigint) FROM identity_subjects s \
            JOIN identities i ON i.id = s.identity WHERE i.account = $1 \
            ON CONFLICT (provider, subject) DO UPDATE SET departed_at = excluded.departed_at
            """
        case .findDeparture: "SELECT departed_at FROM departures WHERE provider = $1 AND subject = $2"
        case .removeDepartures: "DELETE FROM departures WHERE departed_at < $1"
        }
    }
}
