/// Requests that wait before they are sent to an endpoint, each with a deadline: the time before a retry, or what a
/// request waits for a connection at most.
///
/// There are few, or none: they are searched one by one. Each entry names its exchange by a handle, and is dropped when
/// that has ended.
struct DelayedRequests: ~Copyable {
    enum Reason: Equatable {
        /// The time before a retry.
        case backoff
        /// Its upstream has as many connections as it may have.
        case connection
    }

    struct Entry {
        let exchange: Handle<Exchange>
        let cluster: ClusterIndex
        /// The endpoint that has failed it, if one has.
        let avoiding: EndpointIndex
        let reason: Reason
        let deadline: Int64
    }

    private var entries: [Entry] = []

    @inline(__always)
    var isEmpty: Bool { entries.isEmpty }

    mutating func add(_ entry: Entry) { entries.append(entry) }

    /// Takes the requests whose time is over, in the order in which they came.
    mutating func takeDue(at now: Int64) -> [Entry] {
        guard entries.contains(where: { $0.deadline <= now }) else { return [] }
        let due = entries.filter { $0.deadline <= now }
        entries.removeAll { $0.deadline <= now }
        return due
    }

    /// Takes the requests that wait for connections, in the order in which they came: those that find none are added
    /// again, with their deadlines.
    mutating func takePending() -> [Entry] {
        guard entries.contains(where: { $0.reason == .connection }) else { return [] }
        let pending = entries.filter { $0.reason == .connection }
        entries.removeAll { $0.reason == .connection }
        return pending
    }

    /// How long the loop may sleep, in milliseconds.
    ///
    /// A connection of another loop may become free meanwhile, of which this one is not told.
    func wait(at now: Int64, idle: Int32) -> Int32 {
        var wait = Int64(idle)
        for entry in entries {
            let left = max(entry.deadline &- now, 0) / 1_000_000 &+ 1
            wait = min(wait, entry.reason == .connection ? min(left, DelayedRequests.poll) : left)
        }
        return Int32(clamping: wait)
    }

    /// Milliseconds between two looks for connections of other loops.
    private static let poll: Int64 = 5
}
