internal import MartletCore

/// Commands that are written again, a few at a time; the ends begin when all writes have been executed.
///
/// Commands of one slot are sent one after the other. Several connections are used, and the second rotation of a session
/// must not arrive before the first.
struct ReplayQueue {
    private static let maximumInFlight = 32

    private var writes: [RedisCommand] = []
    private var ends: [RedisCommand] = []
    private var inFlight = 0
    private var isEnding = false
    /// The slots of what is in flight, with the commands that wait for it.
    private var busy: [HashSlot: FIFO<RedisCommand>] = [:]
    /// Commands whose slot is theirs now.
    private var resumed: [RedisCommand] = []

    var isEmpty: Bool { writes.isEmpty && ends.isEmpty && resumed.isEmpty && inFlight == 0 }

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
            if let command = resumed.popLast() {
                due.append(command)
            } else if let write = writes.popLast() {
                guard begin(write) else { continue }
                due.append(write)
            } else if inFlight == 0 || isEnding, let end = ends.popLast() {
                isEnding = true
                guard begin(end) else { continue }
                due.append(end)
            } else {
                break
            }
            inFlight += 1
        }
        return due
    }

    /// - Returns: `false` if the command waits for another one of its slot.
    private mutating func begin(_ command: RedisCommand) -> Bool {
        guard let slot = command.slot else { return true }
        guard busy[slot] != nil else {
            busy[slot] = FIFO()
            return true
        }
        busy[slot]?.append(command)
        return false
    }

    /// Drops what has not been sent.
    mutating func removeAll() {
        writes = []
        ends = []
        resumed = []
        for slot in busy.keys { busy[slot] = FIFO() }
    }

    /// A command of a slot has been executed, or has failed.
    mutating func finished(_ slot: HashSlot?) {
        inFlight -= 1
        if let slot {
            if let next = busy[slot]?.popFirst() { resumed.append(next) } else { busy[slot] = nil }
        }
        if inFlight == 0, resumed.isEmpty { isEnding = false }
    }
}
