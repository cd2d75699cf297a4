internal import MartletCore

/// When a service is called: not for a while after too many failures in a row, and then once, to see whether it works.
struct Circuit {
    private let failures: Int
    private let open: Duration
    private var count = 0
    private var openUntil: MonotonicTime?

    init(failures: Int, open: Duration) {
        self.failures = failures
        self.open = open
    }

    var isOpen: Bool { openUntil != nil }

    /// Whether a call may be made now.
    mutating func admits(at now: MonotonicTime) -> Bool {
        guard let end = openUntil else { return true }
        guard now >= end else { return false }
        // One call tries; the others wait for its result, or for the next turn.
        openUntil = now + open
        return true
    }

    /// A call has ended.
    mutating func record(isFailure: Bool, at now: MonotonicTime) {
        guard isFailure else {
            (count, openUntil) = (0, nil)
            return
        }
        count = min(count + 1, failures)
        if count >= failures { openUntil = now + open }
    }
}
