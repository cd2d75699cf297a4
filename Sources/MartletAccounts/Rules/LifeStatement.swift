/// The SQL statements of the state of identities after their login; see ``Statement``.
enum LifeStatement: Sendable, Hashable {
    case lockIdentity
    case confirm
    case noteNotified
    case revoke
    case states
    case remaining
    case identityClaims
    case setIdentityClaims

    case putGrant
    case grants
    case removeGrants

    case findNotification
    case addNotification
    case removeNotifications

    case addEndedSession
    case removeEndedSessions

    case lockDeletion
    case requestDeletion
    case restore
    case cancelJobs
    case accountGrants
    case removeIdentities
    case releaseSubjects
    case releaseGrants
    case erase
    case retain
    case announce

    case dueChecks
    case beginCheck
    case noteValid

    case addJob
    case dueJobs
    case lockJob
    case removeJob
    case postponeJob
    case setJobData
    case countRevocations
    /// The jobs that revoke grants of a provider's subject, and perhaps some of others.
    case revocations
    case pendingRevocations

    case canaries
    case addCanary
    case keyInGrants

    /// The SQL text.
    func text(_ dialect: Dialect) -> String {
        let forUpdate = dialect == .postgresql ? " FOR UPDATE" : ""
        switch self {
        case .lockIdentity: return LifeStatement.found + forUpdate
        case .lockDeletion:
            return "SELECT deletion_at, deletion_reason, deleted_at, deletion_announced FROM accounts "
                + "WHERE subject = $1" + forUpdate
        case .lockJob: return "SELECT number FROM jobs WHERE number = $1" + forUpdate
        default: return identityText ?? deletionText ?? jobText
        }
    }

    private static let found = """
        SELECT i.id, i.account, i.state, i.revoked_at, i.notified_at, i.confirmed_at, i.subject FROM identity_subjects s \
        JOIN identities i ON i.id = s.identity WHERE s.provider = $1 AND s.subject = $2
        """

    /// Whether the identity was exported, and has no subject at the new team yet.
    private static let isPending =
        "EXISTS (SELECT 1 FROM identity_transfers t WHERE t.identity = $1 AND t.done_at IS NULL)"

    private var identityText: String? {
        switch self {
        case .confirm:
            """
            UPDATE identities SET state = CASE WHEN \(LifeStatement.isPending) THEN 4 ELSE 1 END, state_at = $2, \
            confirmed_at = CASE WHEN coalesce(confirmed_at, 0) < $4 THEN $4 ELSE confirmed_at END, \
            check_at = CASE WHEN \(LifeStatement.isPending) THEN NULL \
            WHEN CAST($3 AS bigint) < 0 THEN check_at ELSE CAST($3 AS bigint) END WHERE id = $1
            """
        case .noteNotified: "UPDATE identities SET notified_at = $2 WHERE id = $1"
        case .revoke:
            "UPDATE identities SET state = $2, state_at = $3, revoked_at = $4, check_at = NULL WHERE id = $1"
        case .states:
            """
            SELECT i.provider, i.state, i.state_at, (SELECT count(*) FROM grants g WHERE g.identity = i.id) \
            FROM identities i WHERE i.account = $1 ORDER BY i.created_at, i.id
            """
        case .remaining: "SELECT id FROM identities WHERE account = $1 AND coalesce(state, 0) <> 3 AND id <> $2 LIMIT 1"
        case .identityClaims: "SELECT claims FROM identities WHERE id = $1"
        case .setIdentityClaims: "UPDATE identities SET claims = $2 WHERE id = $1"
        case .putGrant:
            """
            INSERT INTO grants (identity, client, key_id, token) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (identity, client) DO UPDATE SET key_id = excluded.key_id, token = excluded.token
            """
        case .grants: "SELECT client, key_id, token FROM grants WHERE identity = $1 ORDER BY client"
        case .removeGrants: "DELETE FROM grants WHERE identity = $1"
        case .findNotification: "SELECT outcome FROM notifications WHERE provider = $1 AND id = $2"
        case .addNotification:
            """
            INSERT INTO notifications (provider, id, type, subject, event_at, received_at, outcome) \
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (provider, id) DO NOTHING
            """
        case .removeNotifications: "DELETE FROM notifications WHERE received_at < $1"
        case .dueChecks:
            """
            SELECT i.id, i.account, i.subject, i.check_at, g.client, g.key_id, g.token FROM identities i \
            JOIN grants g ON g.identity = i.id WHERE i.provider = $1 AND i.check_at <= $2 \
            ORDER BY i.check_at, i.id, g.client LIMIT $3
            """
        case .beginCheck: "UPDATE identities SET check_at = $2 WHERE id = $1 AND check_at = $3 RETURNING id"
        case .noteValid: "UPDATE identities SET state_at = $2 WHERE id = $1 AND state = 1"
        default: nil
        }
    }

    private var deletionText: String? {
        switch self {
        case .requestDeletion: "UPDATE accounts SET deletion_at = $2, deletion_reason = $3 WHERE subject = $1"
        case .restore: "UPDATE accounts SET deletion_at = NULL, deletion_reason = NULL WHERE subject = $1"
        case .cancelJobs: "DELETE FROM jobs WHERE account = $1 AND kind = $2"
        case .accountGrants:
            """
            SELECT i.provider, i.subject, g.client, g.key_id, g.token FROM identities i \
            JOIN grants g ON g.identity = i.id WHERE i.account = $1 ORDER BY i.id, g.client
            """
        case .removeIdentities: "DELETE FROM identities WHERE account = $1"
        case .releaseSubjects:
            "DELETE FROM identity_subjects WHERE identity IN (SELECT id FROM identities WHERE account = $1)"
        case .releaseGrants:
            "DELETE FROM grants WHERE identity IN (SELECT id FROM identities WHERE account = $1)"
        case .erase:
            """
            UPDATE accounts SET kept_claims = '{}', claims = NULL, rule_claims = NULL, profile_claims = NULL, \
            deleted_at = $2 WHERE subject = $1
            """
        case .retain: "UPDATE accounts SET deleted_at = $2 WHERE subject = $1"
        case .announce: "UPDATE accounts SET deletion_announced = 1 WHERE subject = $1"
        default: nil
        }
    }

    private var jobText: String {
        switch self {
        case .addJob:
            """
            INSERT INTO jobs (kind, account, provider, data, attempts, due_at, created_at) \
            VALUES ($1, $2, $3, $4, 0, $5, $6) RETURNING number
            """
        case .dueJobs:
            """
            SELECT number, kind, account, provider, data, attempts, created_at FROM jobs \
            WHERE due_at <= $1 ORDER BY due_at, number LIMIT $2
            """
        case .removeJob: "DELETE FROM jobs WHERE number = $1"
        case .postponeJob: "UPDATE jobs SET attempts = attempts + 1, due_at = $2, error = $3 WHERE number = $1"
        case .setJobData: "UPDATE jobs SET data = $2 WHERE number = $1"
        case .countRevocations: "SELECT count(*) FROM jobs WHERE account = $1 AND kind = 'revoke' AND number <> $2"
        case .revocations:
            """
            SELECT number, kind, account, provider, data, attempts, created_at FROM jobs \
            WHERE kind = 'revoke' AND provider = $1 AND data LIKE '%' || $2 || '%' ORDER BY number
            """
        case .pendingRevocations: "SELECT count(*), min(created_at) FROM jobs WHERE kind = 'revoke'"
        case .addEndedSession:
            "INSERT INTO ended_sessions (id, ended_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id"
        case .removeEndedSessions: "DELETE FROM ended_sessions WHERE ended_at < $1"
        case .canaries: "SELECT key_id, canary FROM grant_keys"
        case .addCanary:
            "INSERT INTO grant_keys (key_id, canary) VALUES ($1, $2) ON CONFLICT (key_id) DO NOTHING"
        case .keyInGrants:
            """
            SELECT 1 FROM grants WHERE key_id = $1 UNION ALL \
            SELECT 1 FROM jobs WHERE kind = 'revoke' AND data LIKE '%' || $1 || '%' LIMIT 1
            """
        default: ""
        }
    }
}
