/// The SQL statements of API keys, shared by both databases.
///
/// Each change gives its key the highest version of the provider, so that the changes since a version are found by an
/// index. The versions are given out under a lock that is held until the commit: one that is visible has no lower one
/// that is not.
enum KeyStatement: Sendable, Hashable {
    case add
    case find
    case list
    case revoke
    case rotate
    case noteUse
    /// The highest version of a provider.
    case version
    case changes
    /// Revokes the keys of an account, and forgets all but their ids and subjects.
    case erase

    private static let columns = """
        id, digest, previous_digest, previous_until, subject, is_account, claims, scopes, created_at, rotated_at, \
        expires_at, revoked_at, last_used_at, version
        """

    private static let nextVersion = "(SELECT coalesce(max(version), 0) + 1 FROM api_keys WHERE provider = $1)"

    /// The SQL text.
    var text: String {
        switch self {
        case .add:
            """
            INSERT INTO api_keys (provider, id, digest, subject, is_account, claims, scopes, created_at, expires_at, \
            version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif(CAST($9 AS bigint), -1), \(Self.nextVersion)) \
            ON CONFLICT (provider, id) DO NOTHING RETURNING id
            """
        case .find: "SELECT \(Self.columns) FROM api_keys WHERE provider = $1 AND id = $2"
        case .list: "SELECT \(Self.columns) FROM api_keys WHERE provider = $1 AND id > $2 ORDER BY id LIMIT $3"
        case .revoke:
            """
            UPDATE api_keys SET revoked_at = $3, version = \(Self.nextVersion) \
            WHERE provider = $1 AND id = $2 AND revoked_at IS NULL
            """
        case .rotate:
            """
            UPDATE api_keys SET previous_digest = CASE WHEN CAST($4 AS bigint) = -1 THEN NULL ELSE digest END, \
            previous_until = nullif(CAST($4 AS bigint), -1), digest = $3, rotated_at = $5, version = \(Self.nextVersion) \
            WHERE provider = $1 AND id = $2 AND revoked_at IS NULL RETURNING \(Self.columns)
            """
        case .noteUse:
            """
            UPDATE api_keys SET last_used_at = $3 \
            WHERE provider = $1 AND id = $2 AND coalesce(last_used_at, 0) < $3
            """
        case .version: "SELECT coalesce(max(version), 0) FROM api_keys WHERE provider = $1"
        case .changes:
            """
            SELECT \(Self.columns) FROM api_keys WHERE provider = $1 AND version > $2 ORDER BY version LIMIT $3
            """
        case .erase:
            """
            UPDATE api_keys SET digest = '', previous_digest = NULL, previous_until = NULL, claims = '{}', \
            scopes = '[]', last_used_at = NULL, revoked_at = coalesce(revoked_at, $2) \
            WHERE subject = $1 AND is_account = 1
            """
        }
    }
}
