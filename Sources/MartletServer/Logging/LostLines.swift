internal import MartletCore

/// Decides when to say that lines of a log were lost: once when it begins, and once when it is over, with their number.
struct LostLines {
    /// What is to be said of a loss that is over.
    struct Summary: Equatable {
        let lines: Int
        let seconds: Int64
    }

    /// How long nothing has to be lost for a loss to be over: lines that are lost and written in turn are one loss.
    static let quietTime = Duration.seconds(1)

    private var lines = 0
    private var since = MonotonicTime.never
    private var last = MonotonicTime.never
    private var isWriting = true

    var isOpen: Bool { lines > 0 }

    /// Lines were lost.
    /// - Parameter isWriting: whether lines can be written nevertheless: the reader is only slow.
    /// - Returns: whether this begins a loss.
    mutating func lost(_ count: Int, isWriting: Bool, at now: MonotonicTime) -> Bool {
        guard count > 0 else { return false }
        let isFirst = lines == 0
        if isFirst { since = now }
        lines += count
        last = now
        self.isWriting = isWriting
        return isFirst
    }

    mutating func written() { isWriting = true }

    /// What is to be said now; `nil` for nothing.
    mutating func summary(at now: MonotonicTime) -> Summary? {
        guard lines > 0, isWriting, now.since(last) >= LostLines.quietTime else { return nil }
        defer { lines = 0 }
        return Summary(lines: lines, seconds: now.since(since).wholeSeconds)
    }
}
