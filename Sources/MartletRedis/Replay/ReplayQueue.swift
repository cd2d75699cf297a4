/// Commands that are written again, a few at a time; the ends begin when all writes have been executed.
struct ReplayQueue {
    private static let maximumInFlight = 32

    private var writes: [RedisCommand] = []
    private var ends: [RedisCommand] = []
    private var inFlight = 0
    private var isEnding = false

    var isEmpty: Bool { writes.isEmpty && ends.isEmpty && inFlight == 0 }

    /// Commands that may wait: two full lists of recent writes.
    private static let maximumWaiting = 65_536

    mutating func add(writes: [RedisCommand], ends: [RedisCommand]) {
        guard self.writes.count + self.ends.count < ReplayQueue.maximumWaiting else { return }
        // Sent from the last to the first. What is still waiting is older.
        self.writes = writes.reversed() + self.writes
        self.ends = ends.reversed() + self.ends
    }

    /// The commands to send now.
    mutating func next() -> [RedisCommand] {
        var due: [RedisCommand] = []
        while inFlight < ReplayQueue.maximumInFlight {
            if let write = writes.popLast() {
                due.append(write)
            } else if writes.isEmpty, inFlight == 0 || isEnding, let end = ends.popLast() {
                isEnding = true
                due.append(end)
            } else {
                break
            }
            inFlight += 1
        }
        return due
    }

    /// Drops what has not been sent.
    mutating func removeAll() {
        writes = []
        ends = []
    }

    mutating func finished() {
        inFlight -= 1
        if inFlight == 0 { isEnding = false }
    }
}
