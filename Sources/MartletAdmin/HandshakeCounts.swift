/// TLS handshakes with clients, by version and outcome.
struct HandshakeCounts {
    /// The count of one version and outcome.
    struct Row {
        /// `1.3`; `-` for a failure, which often happens before a version is negotiated.
        let version: String
        /// `full`, `resumed`, or a `tls.` code.
        let outcome: String
        let count: Int

        var isFailure: Bool { outcome != "full" && outcome != "resumed" }
    }

    private var counts: [String: Int] = [:]

    /// Adds the counts of a loop: by version, by version and `resumed`, or by error code.
    mutating func add(_ loop: [String: Int]) { counts.merge(loop, uniquingKeysWith: +) }

    /// Sorted by name.
    var rows: [Row] {
        counts.sorted { $0.key < $1.key }.map { name, count in
            guard name.hasPrefix("TLSv") else { return Row(version: "-", outcome: name, count: count) }
            let parts = name.dropFirst(4).split(separator: " ", maxSplits: 1)
            return Row(version: String(parts.first ?? "-"), outcome: parts.count > 1 ? "resumed" : "full", count: count)
        }
    }

    var failures: [Row] { rows.filter(\.isFailure) }
    var succeeded: Int { rows.reduce(0) { $0 + ($1.isFailure ? 0 : $1.count) } }
    var resumed: Int { rows.reduce(0) { $0 + ($1.outcome == "resumed" ? $1.count : 0) } }

    /// Successful handshakes by version.
    var versions: [(version: String, count: Int)] {
        var found: [String: Int] = [:]
        for row in rows where !row.isFailure { found[row.version, default: 0] += row.count }
        return found.map { ($0.key, $0.value) }.sorted { $0.version < $1.version }
    }
}
