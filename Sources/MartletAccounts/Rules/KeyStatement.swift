/// The SQL statements of API keys; see ``Statement``.
///
/// Each change gives its key the highest version of the provider, so that the changes since a version are found by an
/// index. The versions are given out under a lock that is held until the commit: one that is visible has no lower one
/// that is not.
enum KeyStatement {
    private static let columns = """
        id, digest, previous_digest, previous_until, subject, is_account, claims, scopes, created_at, rotated_at, \
        expires_at, revoked_at, last_used_at, version
        """

    private static let nextVersion = "(SELECT coalesce(max(version), 0) + 1 FROM api_keys WHERE provider = $1)"

    static let add = Statement(
        """
        INSERT INTO api_keys (provider, id, digest, subject, is_account, claims, scopes, created_at, expires_at, \
        version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif(CAST($9 AS bigint), -1), \(nextVersion)) \
        ON CONFLICT (provider, id) DO NOTHING RETURNING id
        """)
    static let find = Statement("SELECT \(columns) FROM api_keys WHERE provider = $1 AND id = $2")
    static let list = Statement("SELECT \(columns) FROM api_keys WHERE provider = $1 AND id > $2 ORDER BY id LIMIT $3")
    static let revoke = Statement(
        """
        UPDATE api_keys SET revoked_at = $3, version = \(nextVersion) \
        WHERE provider = $1 AND id = $2 AND revoked_at IS NULL
        """)
    static let rotate = Statement(
        """
        UPDATE api_keys SET previous_digest = CASE WHEN CAST($4 AS bigint) = -1 THEN NULL ELSE digest END, \
        previous_until = nullif(CAST($4 AS bigint), -1), digest = $3, rotated_at = $5, version = \(nextVersion) \
        WHERE provider = $1 AND id = $2 AND revoked_at IS NULL RETURNING \(columns)
        """)
    static let noteUse = Statement(
        """
        UPDATE api_keys SET last_used_at = $3 \
        WHERE provider = $1 AND id = $2 AND coalesce(last_used_at, 0) < $3
        """)
    /// The highest version of a provider.
    static let version = Statement("SELECT coalesce(max(version), 0) FROM api_keys WHERE provider = $1")
    static let changes = Statement(
        """
        SELECT \(columns) FROM api_keys WHERE provider = $1 AND version > $2 ORDER BY version LIMIT $3
        """)
    /// Revokes the keys of an account, and forgets all but their ids and subjects.
    static let erase = Statement(
        """
        UPDATE api_keys SET digest = '', previous_digest = NULL, previous_until = NULL, claims = '{}', \
        scopes = '[]', last_used_at = NULL, revoked_at = coalesce(revoked_at, $2) \
        WHERE subject = $1 AND is_account = 1
        """)
}
