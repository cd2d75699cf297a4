/// One table of the schema, as `AccountCopy` reads and writes it.
struct CopyTable: Sendable {
    struct Column: Sendable {
        let name: String
        let isInteger: Bool
    }

    let name: String
    /// The first ones are the primary key.
    let columns: [Column]
    let keyCount: Int
    /// Whether it holds work that one gateway has left to do, which is copied when the source takes no writes any more.
    let isWork: Bool

    /// - Parameters:
    ///   - key: the primary key; a name with `#` in front is an integer.
    ///   - others: all other columns.
    private init(_ name: String, key: [String], _ others: [String] = [], isWork: Bool = false) {
        self.name = name
        self.isWork = isWork
        keyCount = key.count
        columns = (key + others).map { text in
            let isInteger = text.hasPrefix("#")
            return Column(name: isInteger ? String(text.dropFirst()) : text, isInteger: isInteger)
        }
    }

    /// Whether the database numbers its rows.
    var isNumbered: Bool { columns.first?.name == "number" }

    /// All tables but those of versions and leases; a table is behind those that it references.
    static let all = [
        CopyTable(
            "accounts", key: ["subject"],
            [
                "#created_at", "kept_claims", "#disabled_at", "claims", "rule_claims", "#claims_version",
                "#deletion_at", "deletion_reason", "#deletion_announced", "#deleted_at", "profile_claims",
                "#reclaimed_at",
            ]),
        CopyTable("account_claims", key: ["account", "name", "value"]),
        CopyTable(
            "identities", key: ["id"],
            [
                "account", "provider", "subject", "#created_at", "#last_login_at", "claims", "#state", "#state_at",
                "#confirmed_at", "#revoked_at", "#notified_at", "#check_at", "email_digest",
            ]),
        CopyTable("identity_subjects", key: ["provider", "subject"], ["identity"]),
        CopyTable(
            "users", key: ["key"],
            ["name", "hash", "#disabled", "#created_at", "#changed_at", "claims", "#proved_at"]),
        CopyTable(
            "api_keys", key: ["provider", "id"],
            [
                "digest", "previous_digest", "#previous_until", "subject", "#is_account", "claims", "scopes",
                "#created_at", "#rotated_at", "#expires_at", "#revoked_at", "#last_used_at", "#version",
            ]),
        CopyTable("grants", key: ["identity", "client"], ["key_id", "token"]),
        CopyTable("grant_keys", key: ["key_id"], ["canary"]),
        CopyTable(
            "identity_transfers", key: ["identity"],
            [
                "provider", "transfer_subject", "old_subject", "from_team", "to_team", "#exported_at", "#done_at",
            ]),
        CopyTable(
            "notifications", key: ["provider", "id"], ["type", "subject", "#event_at", "#received_at", "outcome"]),
        CopyTable("ended_sessions", key: ["id"], ["#ended_at"]),
        CopyTable("departures", key: ["provider", "subject"], ["#departed_at"]),
        CopyTable(
            "password_links", key: ["#number"],
            [
                "digest", "#purpose", "provider", "address", "hash", "claims", "#created_at", "#expires_at", "network",
                "neighborhood",
            ],
            isWork: true),
        CopyTable("events", key: ["id"], ["type", "subject", "#created_at", "data"], isWork: true),
        CopyTable(
            "deliveries", key: ["#number"],
            ["hook", "event", "subject", "#state", "#attempts", "#due_at", "error"], isWork: true),
        CopyTable(
            "jobs", key: ["#number"],
            ["kind", "account", "provider", "data", "#attempts", "#due_at", "#created_at", "error"], isWork: true),
    ]

    private var keys: [Column] { Array(columns.prefix(keyCount)) }

    private func names(_ columns: [Column]) -> String { columns.map(\.name).joined(separator: ", ") }

    /// The rows behind a row, in the order of the primary key.
    func page(after row: Row?, limit: Int) throws(AccountError) -> Query {
        let order = names(keys)
        guard let row else {
            return Query(.plain("SELECT \(names(columns)) FROM \(name) ORDER BY \(order) LIMIT \(limit)"))
        }
        var values: [Query.Value] = []
        for (index, column) in keys.enumerated() {
            values.append(column.isInteger ? .integer(try row.integer(index)) : .text(try row.text(index)))
        }
        let parameters = (1...keyCount).map { "$\($0)" }.joined(separator: ", ")
        let text = """
            SELECT \(names(columns)) FROM \(name) WHERE (\(order)) > (\(parameters)) ORDER BY \(order) LIMIT \(limit)
            """
        return Query(.plain(text), values)
    }

    /// Adds rows to PostgreSQL, or replaces those with the same keys.
    func replacement(_ rows: [Row]) throws(AccountError) -> Query {
        let others = columns.dropFirst(keyCount).map { "\($0.name) = excluded.\($0.name)" }.joined(separator: ", ")
        let action = others.isEmpty ? "DO NOTHING" : "DO UPDATE SET \(others)"
        let text = """
            INSERT INTO \(name) (\(names(columns))) OVERRIDING SYSTEM VALUE SELECT * FROM unnest(\(arrays(columns))) \
            ON CONFLICT (\(names(keys))) \(action)
            """
        return Query(.plain(text), try literals(columns, rows))
    }

    /// Removes rows by their keys from PostgreSQL.
    func removal(_ rows: [Row]) throws(AccountError) -> Query {
        let match = keys.map { "t.\($0.name) = r.\($0.name)" }.joined(separator: " AND ")
        let text = "DELETE FROM \(name) t USING unnest(\(arrays(keys))) AS r(\(names(keys))) WHERE \(match)"
        return Query(.plain(text), try literals(keys, rows))
    }

    private func arrays(_ columns: [Column]) -> String {
        columns.enumerated().map { "$\($0 + 1)::\($1.isInteger ? "bigint" : "text")[]" }.joined(separator: ", ")
    }

    /// Each column of the rows as an array of PostgreSQL.
    private func literals(_ columns: [Column], _ rows: [Row]) throws(AccountError) -> [Query.Value] {
        var values: [Query.Value] = []
        for (index, column) in columns.enumerated() {
            var text: [UInt8] = [UInt8(ascii: "{")]
            for row in rows {
                if text.count > 1 { text.append(UInt8(ascii: ",")) }
                guard let value = try row.optionalText(index) else {
                    text += Array("NULL".utf8)
                    continue
                }
                try CopyTable.append(value, quoted: !column.isInteger, to: &text)
            }
            text.append(UInt8(ascii: "}"))
            values.append(.text(String(decoding: text, as: UTF8.self)))
        }
        return values
    }

    private static func append(_ value: String, quoted: Bool, to text: inout [UInt8]) throws(AccountError) {
        guard quoted else {
            text += Array(value.utf8)
            return
        }
        text.append(UInt8(ascii: "\""))
        for byte in value.utf8 {
            // PostgreSQL stores no NUL, and Martlet writes none.
            guard byte != 0 else { throw .corrupt }
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.append(UInt8(ascii: "\\")) }
            text.append(byte)
        }
        text.append(UInt8(ascii: "\""))
    }

    /// Whether the key of a row is before that of another one, in the order of both databases.
    func isBefore(_ row: Row, _ other: Row) throws(AccountError) -> Bool {
        for (index, column) in keys.enumerated() {
            if column.isInteger {
                let (left, right) = (try row.integer(index), try other.integer(index))
                if left != right { return left < right }
            } else {
                let (left, right) = (try row.text(index), try other.text(index))
                if left.utf8.elementsEqual(right.utf8) { continue }
                return left.utf8.lexicographicallyPrecedes(right.utf8)
            }
        }
        return false
    }
}
