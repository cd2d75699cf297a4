/// The SQL statements of the outbox and of leases; see ``Statement``.
enum OutboxStatement {
    /// Milliseconds since 1970 by the clock of the database, which all instances share.
    private static func now(_ dialect: Dialect) -> String {
        switch dialect {
        case .sqlite: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
        case .postgresql: "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
        }
    }

    private static let columns = "d.number, d.attempts, e.id, e.type, e.subject, e.created_at, e.data"

    static let addEvent = Statement(
        "INSERT INTO events (id, type, subject, created_at, data) VALUES ($1, $2, $3, $4, $5)")
    static let addDelivery = Statement(
        "INSERT INTO deliveries (hook, event, subject, state, attempts, due_at) VALUES ($1, $2, $3, 0, 0, $4)")
    static let due = Statement(
        """
        SELECT \(columns) FROM deliveries d JOIN events e ON e.id = d.event \
        WHERE d.hook = $1 AND d.state = 0 AND d.due_at <= $2 AND NOT EXISTS (SELECT 1 FROM deliveries p \
        WHERE p.hook = d.hook AND p.subject = d.subject AND p.state = 0 AND p.number < d.number) \
        ORDER BY d.due_at, d.number LIMIT $3
        """)
    static let remove = Statement("DELETE FROM deliveries WHERE number = $1")
    /// Removes an event that has no deliveries.
    static let removeEvent = Statement(
        "DELETE FROM events WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event = events.id)")
    static let fail = Statement(
        "UPDATE deliveries SET attempts = attempts + 1, due_at = $2, error = $3 WHERE number = $1")
    /// Delays a subject's open deliveries until a retry.
    static let postpone = Statement(
        "UPDATE deliveries SET due_at = $3 WHERE hook = $1 AND subject = $2 AND state = 0 AND due_at < $3")
    static let bury = Statement(
        "UPDATE deliveries SET state = 1, attempts = attempts + 1, error = $2 WHERE number = $1")
    /// An empty hook and a negative state stand for all.
    static let list = Statement(
        """
        SELECT \(columns), d.hook, d.state, d.due_at, d.error FROM deliveries d JOIN events e ON e.id = d.event \
        WHERE d.number > $1 AND ($2 = '' OR d.hook = $2) AND (CAST($3 AS bigint) < 0 OR d.state = CAST($3 AS bigint)) \
        ORDER BY d.number LIMIT $4
        """)
    /// The number of deliveries by state.
    static let states = Statement("SELECT state, count(*) FROM deliveries WHERE hook = $1 GROUP BY state")
    /// When the event of the oldest open delivery happened.
    static let oldest = Statement(
        """
        SELECT e.created_at FROM deliveries d JOIN events e ON e.id = d.event \
        WHERE d.hook = $1 AND d.state = 0 ORDER BY d.number LIMIT 1
        """)
    static let resend = Statement(
        """
        UPDATE deliveries SET state = 0, attempts = 0, due_at = $2, error = NULL WHERE event = $1 RETURNING hook
        """)
    /// Makes a subject's open deliveries due, after one of them was made due.
    static let expedite = Statement(
        """
        UPDATE deliveries SET due_at = $2 WHERE state = 0 AND due_at > $2 \
        AND subject = (SELECT subject FROM events WHERE id = $1)
        """)
    /// Locks an event, so that of two webhooks that confirm it at the same time the second one removes it.
    static let lockEvent = Statement("SELECT id FROM events WHERE id = $1", locks: true)
    /// Counts events up to a limit.
    static let count = Statement("SELECT count(*) FROM (SELECT 1 FROM events LIMIT $1) AS counted")
    static let removeOldest = Statement(
        """
        DELETE FROM events WHERE id IN (SELECT id FROM events \
        ORDER BY CASE WHEN type LIKE 'login.%' THEN 0 ELSE 1 END, created_at, id LIMIT $1) RETURNING id
        """)
    /// The names of the webhooks that have deliveries.
    static let hooks = Statement("SELECT DISTINCT hook FROM deliveries")
    /// Deliveries to a webhook of events before an instant, unless its lease is held.
    static let unattended = Statement { dialect in
        """
        SELECT d.number, d.event FROM deliveries d JOIN events e ON e.id = d.event \
        WHERE d.hook = $1 AND e.created_at < $3 AND NOT EXISTS (SELECT 1 FROM leases l \
        WHERE l.name = $2 AND l.expires_at > \(now(dialect))) LIMIT $4
        """
    }

    static let acquireLease = Statement { dialect in
        """
        INSERT INTO leases (name, owner, expires_at) VALUES ($1, $2, \(now(dialect)) + $3) \
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at \
        WHERE leases.owner = excluded.owner OR leases.expires_at <= \(now(dialect)) RETURNING owner
        """
    }
    static let releaseLease = Statement("DELETE FROM leases WHERE name = $1 AND owner = $2")
}
