internal import MartletDecisions
internal import MartletProvider

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
        /// No descriptor is free; other loops close connections that are idle.
        case descriptor
    }

    struct Entry {
        let exchange: Handle<Exchange>
        let cluster: ClusterIndex
        /// The endpoint that has failed it, if one has.
        let avoiding: EndpointIndex
        let reason: Reason
        let deadline: Int64
        /// Of the client; `nil` where its address does not tell, or it does not matter.
        var network: ClientNetwork?
    }

    private var entries: [Entry] = []
    /// The upstreams whose connections carried no more for those that wait: how many they carried then, and until when
    /// there is no use in a look while they carry as many.
    private var full: [ClusterIndex: (carried: Int, until: Int64)] = [:]
    /// When other loops are asked for connections again.
    private var askedUntil: Int64 = .min

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

    /// The upstreams for whose connections requests wait.
    var pendingClusters: [ClusterIndex] {
        var clusters: [ClusterIndex] = []
        for entry in entries where entry.reason == .connection && !clusters.contains(entry.cluster) {
            clusters.append(entry.cluster)
        }
        return clusters
    }

    /// Whether requests wait for a descriptor.
    var waitsForDescriptors: Bool { entries.contains { $0.reason == .descriptor } }

    /// Takes the requests that wait for a descriptor.
    mutating func takeForDescriptors() -> [Entry] {
        defer { entries.removeAll { $0.reason == .descriptor } }
        return entries.filter { $0.reason == .descriptor }
    }

    /// Whether the connections of an upstream may carry more than when it was last looked at.
    func mayCarryMore(_ cluster: ClusterIndex, carried: Int, at now: Int64) -> Bool {
        guard let last = full[cluster] else { return true }
        return last.carried != carried || last.until <= now
    }

    /// Notes how many requests the connections of an upstream carry, where that were too many for some that wait.
    mutating func tried(_ cluster: ClusterIndex, carried: Int?, at now: Int64) {
        full[cluster] = carried.map { ($0, now &+ DelayedRequests.poll * 1_000_000) }
    }

    /// Whether it is time to ask other loops for connections, which wakes them; then not again for a moment.
    mutating func mayAsk(at now: Int64) -> Bool {
        guard now >= askedUntil else { return false }
        askedUntil = now &+ DelayedRequests.poll * 1_000_000
        return true
    }

    /// Takes the requests that wait for connections of an upstream: the first of each network, in the order in which
    /// they came, then the second ones. Those that find none are added again, with their deadlines.
    mutating func takePending(of cluster: ClusterIndex) -> [Entry] {
        let pending = entries.filter { $0.reason == .connection && $0.cluster == cluster }
        entries.removeAll { $0.reason == .connection && $0.cluster == cluster }
        var turns: [ClientNetwork?: Int] = [:]
        var rounds: [[Entry]] = []
        for entry in pending {
            let turn = turns[entry.network, default: 0]
            turns[entry.network] = turn + 1
            if turn == rounds.count { rounds.append([]) }
            rounds[turn].append(entry)
        }
        return rounds.flatMap(\.self)
    }

    /// How long the loop may sleep, in milliseconds.
    ///
    /// A connection of another loop may become free meanwhile, of which this one is not told.
    func wait(at now: Int64, idle: Int32) -> Int32 {
        var wait = Int64(idle)
        for entry in entries {
            let left = max(entry.deadline &- now, 0) / 1_000_000 &+ 1
            wait = min(wait, entry.reason == .backoff ? left : min(left, DelayedRequests.poll))
        }
        return Int32(clamping: wait)
    }

    /// How long a request waits for a descriptor at most, in nanoseconds.
    static let descriptorWait: Int64 = 100_000_000

    /// Milliseconds between two looks for connections of other loops.
    private static let poll: Int64 = 5
}
