/// The SQL statements of the state of identities after their login; see ``Statement``.
enum LifeStatement {
    private static let found = """
        SELECT i.id, i.account, i.state, i.revoked_at, i.notified_at, i.confirmed_at, i.subject FROM identity_subjects s \
        JOIN identities i ON i.id = s.identity WHERE s.provider = $1 AND s.subject = $2
        """

    /// Whether the identity was exported, and has no subject at the new team yet.
    private static let isPending =
        "EXISTS (SELECT 1 FROM identity_transfers t WHERE t.identity = $1 AND t.done_at IS NULL)"

    static let lockIdentity = Statement(found, locks: true)
    static let confirm = Statement(
        """
        UPDATE identities SET state = CASE WHEN \(isPending) THEN 4 ELSE 1 END, state_at = $2, \
        confirmed_at = CASE WHEN coalesce(confirmed_at, 0) < $4 THEN $4 ELSE confirmed_at END, \
        check_at = CASE WHEN \(isPending) THEN NULL \
        WHEN CAST($3 AS bigint) < 0 THEN check_at ELSE CAST($3 AS bigint) END WHERE id = $1
        """)
    static let noteNotified = Statement("UPDATE identities SET notified_at = $2 WHERE id = $1")
    static let revoke = Statement(
        "UPDATE identities SET state = $2, state_at = $3, revoked_at = $4, check_at = NULL WHERE id = $1")
    static let states = Statement(
        """
        SELECT i.provider, i.state, i.state_at, (SELECT count(*) FROM grants g WHERE g.identity = i.id) \
        FROM identities i WHERE i.account = $1 ORDER BY i.created_at, i.id
        """)
    static let remaining = Statement(
        "SELECT id FROM identities WHERE account = $1 AND coalesce(state, 0) <> 3 AND id <> $2 LIMIT 1")
    static let identityClaims = Statement("SELECT claims FROM identities WHERE id = $1")
    static let setIdentityClaims = Statement("UPDATE identities SET claims = $2 WHERE id = $1")

    static let putGrant = Statement(
        """
        INSERT INTO grants (identity, client, key_id, token) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (identity, client) DO UPDATE SET key_id = excluded.key_id, token = excluded.token
        """)
    static let grants = Statement("SELECT client, key_id, token FROM grants WHERE identity = $1 ORDER BY client")
    static let removeGrants = Statement("DELETE FROM grants WHERE identity = $1")

    static let findNotification = Statement("SELECT outcome FROM notifications WHERE provider = $1 AND id = $2")
    static let addNotification = Statement(
        """
        INSERT INTO notifications (provider, id, type, subject, event_at, received_at, outcome) \
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (provider, id) DO NOTHING
        """)
    static let removeNotifications = Statement("DELETE FROM notifications WHERE received_at < $1")

    static let addEndedSession = Statement(
        "INSERT INTO ended_sessions (id, ended_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id")
    static let removeEndedSessions = Statement("DELETE FROM ended_sessions WHERE ended_at < $1")

    static let lockDeletion = Statement(
        "SELECT deletion_at, deletion_reason, deleted_at, deletion_announced FROM accounts WHERE subject = $1",
        locks: true)
    static let requestDeletion = Statement(
        "UPDATE accounts SET deletion_at = $2, deletion_reason = $3 WHERE subject = $1")
    static let restore = Statement("UPDATE accounts SET deletion_at = NULL, deletion_reason = NULL WHERE subject = $1")
    static let cancelJobs = Statement("DELETE FROM jobs WHERE account = $1 AND kind = $2")
    static let accountGrants = Statement(
        """
        SELECT i.provider, i.subject, g.client, g.key_id, g.token FROM identities i \
        JOIN grants g ON g.identity = i.id WHERE i.account = $1 ORDER BY i.id, g.client
        """)
    static let removeIdentities = Statement("DELETE FROM identities WHERE account = $1")
    static let releaseSubjects = Statement(
        "DELETE FROM identity_subjects WHERE identity IN (SELECT id FROM identities WHERE account = $1)")
    static let releaseGrants = Statement(
        "DELETE FROM grants WHERE identity IN (SELECT id FROM identities WHERE account = $1)")
    static let erase = Statement(
        """
        UPDATE accounts SET kept_claims = '{}', claims = NULL, rule_claims = NULL, profile_claims = NULL, \
        deleted_at = $2 WHERE subject = $1
        """)
    static let retain = Statement("UPDATE accounts SET deleted_at = $2 WHERE subject = $1")
    static let announce = Statement("UPDATE accounts SET deletion_announced = 1 WHERE subject = $1")

    static let dueChecks = Statement(
        """
        SELECT i.id, i.account, i.subject, i.check_at, g.client, g.key_id, g.token FROM identities i \
        JOIN grants g ON g.identity = i.id WHERE i.provider = $1 AND i.check_at <= $2 \
        ORDER BY i.check_at, i.id, g.client LIMIT $3
        """)
    static let beginCheck = Statement(
        "UPDATE identities SET check_at = $2 WHERE id = $1 AND check_at = $3 RETURNING id")
    static let noteValid = Statement("UPDATE identities SET state_at = $2 WHERE id = $1 AND state = 1")

    static let addJob = Statement(
        """
        INSERT INTO jobs (kind, account, provider, data, attempts, due_at, created_at) \
        VALUES ($1, $2, $3, $4, 0, $5, $6) RETURNING number
        """)
    static let dueJobs = Statement(
        """
        SELECT number, kind, account, provider, data, attempts, created_at FROM jobs \
        WHERE due_at <= $1 ORDER BY due_at, number LIMIT $2
        """)
    static let lockJob = Statement("SELECT number FROM jobs WHERE number = $1", locks: true)
    static let removeJob = Statement("DELETE FROM jobs WHERE number = $1")
    static let postponeJob = Statement(
        "UPDATE jobs SET attempts = attempts + 1, due_at = $2, error = $3 WHERE number = $1")
    static let setJobData = Statement("UPDATE jobs SET data = $2 WHERE number = $1")
    static let countRevocations = Statement(
        "SELECT count(*) FROM jobs WHERE account = $1 AND kind = 'revoke' AND number <> $2")
    /// The jobs that revoke grants of a provider's subject, and perhaps some of others.
    static let revocations = Statement(
        """
        SELECT number, kind, account, provider, data, attempts, created_at FROM jobs \
        WHERE kind = 'revoke' AND provider = $1 AND data LIKE '%' || $2 || '%' ORDER BY number
        """)
    static let pendingRevocations = Statement("SELECT count(*), min(created_at) FROM jobs WHERE kind = 'revoke'")

    static let canaries = Statement("SELECT key_id, canary FROM grant_keys")
    static let addCanary = Statement(
        "INSERT INTO grant_keys (key_id, canary) VALUES ($1, $2) ON CONFLICT (key_id) DO NOTHING")
    static let keyInGrants = Statement(
        """
        SELECT 1 FROM grants WHERE key_id = $1 UNION ALL \
        SELECT 1 FROM jobs WHERE kind = 'revoke' AND data LIKE '%' || $1 || '%' LIMIT 1
        """)
}
