/// The lines that log files have lost which no configuration names any more: their counters do not go back.
struct FormerLosses {
    /// Of more files those are forgotten whose last loss is the oldest.
    static let limit = 16

    /// The oldest first.
    private(set) var files: [(file: String, lines: Int)] = []

    /// Adds what a file has lost until it was closed.
    mutating func add(_ lines: Int, of file: String) {
        guard lines > 0 else { return }
        var lines = lines
        if let index = files.firstIndex(where: { $0.file == file }) { lines += files.remove(at: index).lines }
        files.append((file, lines))
        if files.count > Self.limit { files.removeFirst() }
    }

    /// What each file has lost, those among them that are open.
    /// - Parameter open: may have several entries for a file.
    func total(with open: [(file: String, lines: Int)]) -> [(file: String, lines: Int)] {
        var total: [String: Int] = [:]
        for (file, lines) in files + open { total[file, default: 0] += lines }
        return total.map { (file: $0.key, lines: $0.value) }.sorted { $0.file < $1.file }
    }
}
