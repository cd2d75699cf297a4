internal import MartletCore

/// What a PostgreSQL server says about itself.
struct ServerRole: Sendable, Equatable {
    /// Whether it follows another server.
    var isStandby: Bool
    /// Whether transactions are read-only by default.
    var isReadOnly: Bool
    /// Incremented by each promotion; `nil` if it cannot be read.
    var timeline: UInt32?

    /// Asks for everything. An ordinary role may call these functions, unless its operator has revoked the right.
    static let query = Query(
        .plain(
            """
            SELECT pg_is_in_recovery()::int, (current_setting('transaction_read_only') = 'on')::int, \
            CASE WHEN pg_is_in_recovery() THEN NULL ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END
            """))
    /// The same for servers that do not tell the timeline.
    static let queryWithoutTimeline = Query(
        .plain("SELECT pg_is_in_recovery()::int, (current_setting('transaction_read_only') = 'on')::int, NULL"))

    /// Reads the row of either query.
    /// - Throws: `accounts.corrupt`.
    static func read(_ rows: [Row]) throws(AccountError) -> ServerRole {
        guard let row = rows.first else { throw .corrupt }
        var timeline: UInt32?
        if let text = try row.optionalText(2) {
            guard text.utf8.count == 8, let number = UInt32(text, radix: 16) else { throw .corrupt }
            timeline = number
        }
        return ServerRole(isStandby: try row.integer(0) == 1, isReadOnly: try row.integer(1) == 1, timeline: timeline)
    }
}

/// Decides which servers are used: primaries with the highest timeline ever seen.
///
/// A primary that was replaced and comes back accepts writes until its operator stops it. Its timeline is lower than
/// that of the server that was promoted instead.
struct PrimaryRule: Sendable {
    /// Whether standbys are used as well.
    let acceptsReadOnly: Bool
    /// The highest timeline seen; 0 if none.
    private(set) var timeline: UInt32 = 0

    init(acceptsReadOnly: Bool) { self.acceptsReadOnly = acceptsReadOnly }

    /// - Returns: why the server is not used; `nil` if it is.
    mutating func reason(against role: ServerRole) -> AccountError? {
        if !acceptsReadOnly {
            if role.isStandby { return .standby }
            if role.isReadOnly { return .readOnlyServer }
        }
        guard let timeline = role.timeline else { return nil }
        if timeline < self.timeline { return .oldPrimary }
        self.timeline = timeline
        return nil
    }
}
