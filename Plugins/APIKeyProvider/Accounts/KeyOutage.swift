internal import MartletCore

/// Whether the changes of keys can be read, and what of that is logged.
final class KeyOutage: Sendable {
    /// A line to log.
    enum Line: Equatable {
        case began
        /// Keys are not accepted any more.
        case rejecting
        case ended
    }

    private struct State {
        var polls = 0
        var isFailing = false
        var isStale = false
    }

    private let state = Lock(State())

    var isFailing: Bool { state.withLock { $0.isFailing } }

    /// Counts a poll; returns how many there were.
    func countPoll() -> Int {
        state.withLock { state in
            state.polls &+= 1
            return state.polls
        }
    }

    /// Notes the state after a poll.
    /// - Returns: what has changed since the poll before.
    func update(isFailing: Bool, isStale: Bool) -> [Line] {
        state.withLock { state in
            var lines: [Line] = []
            if isFailing, !state.isFailing { lines.append(.began) }
            if isStale, !state.isStale { lines.append(.rejecting) }
            if !isFailing, state.isFailing { lines.append(.ended) }
            (state.isFailing, state.isStale) = (isFailing, isStale)
            return lines
        }
    }
}
