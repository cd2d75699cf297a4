internal import MartletCore

/// The nodes of a Redis Cluster.
///
/// The map of slots is asked of several nodes, and what most of them say counts. It is refreshed when a node is lost or
/// says that another one has a key, at most every second, and every 10 s.
struct ClusterTopology: RedisTopology {
    private static let shortestInterval = Duration.seconds(1)
    /// While there is no map yet.
    private static let firstInterval = Duration.milliseconds(100)
    private static let longestInterval = Duration.seconds(10)
    /// How long a round of questions takes at most.
    private static let roundLimit = Duration.milliseconds(300)
    private static let askedPerRound = 5

    /// Questions that have been asked together.
    private struct Round {
        let end: MonotonicTime
        var waiting: Set<RedisURL.Address>
        var views: [[SlotMap.Range]] = []
    }

    private let seeds: [RedisURL.Address]
    private var map = SlotMap()
    private(set) var maps = 0
    /// Connected, and accepting commands.
    private var ready: [RedisURL.Address] = []
    private var opened: Set<RedisURL.Address> = []
    /// Nodes without slots; closed if they still have none in the next map.
    private var unlisted: Set<RedisURL.Address> = []
    /// Slots that have another server since the last map, as servers have said.
    private var redirected = SlotSet()
    private var round: Round?
    private var lastRound: MonotonicTime?
    private var isOutdated = true
    /// Where the next round starts, so that different nodes are asked.
    private var turn = 0

    init(seeds: [RedisURL.Address]) { self.seeds = seeds }

    var canChange: Bool { true }
    var masters: [RedisURL.Address] { map.masters }
    var unassigned: Int { hasMap ? map.unassigned : 0 }
    private var hasMap: Bool { maps > 0 }

    func node(of slot: HashSlot?) -> RedisURL.Address? {
        guard hasMap else { return nil }
        guard let slot else { return ready.isEmpty ? nil : ready[turn % ready.count] }
        return map[slot]
    }

    var nextTick: MonotonicTime? {
        if let round { return round.end }
        guard let lastRound else { return nil }
        guard isOutdated else { return lastRound + ClusterTopology.longestInterval }
        return ready.isEmpty ? nil : lastRound + interval
    }

    private var interval: Duration { hasMap ? ClusterTopology.shortestInterval : ClusterTopology.firstInterval }

    mutating func start(at now: MonotonicTime) -> [TopologyAction] { seeds.compactMap { open($0) } }

    mutating func tick(at now: MonotonicTime) -> [TopologyAction] {
        if let round, now >= round.end { return finishRound() + beginRound(at: now) }
        return beginRound(at: now)
    }

    mutating func nodeReady(_ node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction] {
        if !ready.contains(node) { ready.append(node) }
        return beginRound(at: now)
    }

    mutating func nodeDown(_ node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction] {
        ready.removeAll { $0 == node }
        isOutdated = true
        var actions: [TopologyAction] = []
        if round?.waiting.remove(node) != nil, round?.waiting.isEmpty == true { actions += finishRound() }
        // Every known node may have been replaced.
        if ready.isEmpty { actions += seeds.compactMap { open($0) } }
        return actions + beginRound(at: now)
    }

    mutating func moved(_ slot: HashSlot, to node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction] {
        let former = map[slot]
        guard map.assign(slot, to: node) else { return [] }
        if former != node { redirected.insert(slot) }
        isOutdated = true
        return [open(node)].compactMap { $0 } + beginRound(at: now)
    }

    mutating func suspect(at now: MonotonicTime) -> [TopologyAction] {
        isOutdated = true
        return beginRound(at: now)
    }

    mutating func answered(
        _ question: TopologyQuestion, by server: RedisURL.Address, _ reply: RedisReply?, at now: MonotonicTime
    ) -> [TopologyAction] {
        guard question == .slots, round?.waiting.remove(server) != nil else { return [] }
        if let ranges = reply.flatMap({ SlotMap.ranges($0, from: server) }), !ranges.isEmpty {
            round?.views.append(ranges)
        }
        return round?.waiting.isEmpty == true ? finishRound() : []
    }

    private mutating func beginRound(at now: MonotonicTime) -> [TopologyAction] {
        guard round == nil, !ready.isEmpty else { return [] }
        if let lastRound {
            let elapsed = now.since(lastRound)
            guard elapsed >= (isOutdated ? interval : ClusterTopology.longestInterval) else { return [] }
        }
        turn = (turn + 1) % ready.count
        let asked = (Array(ready[turn...]) + ready[..<turn]).prefix(ClusterTopology.askedPerRound)
        lastRound = now
        isOutdated = false
        round = Round(end: now + ClusterTopology.roundLimit, waiting: Set(asked))
        return asked.map { .ask(.slots, $0) }
    }

    private mutating func finishRound() -> [TopologyAction] {
        guard let views = round?.views else { return [] }
        round = nil
        guard !views.isEmpty else {
            isOutdated = true
            return []
        }
        let next = SlotMap(agreeing: views)
        // The map knows the new server of a redirected slot already; what was written at the old one is not written there.
        var changed = next.changes(since: map)
        changed.formUnion(redirected)
        redirected = []
        map = next
        maps &+= 1
        let masters = map.masters
        // Something is still missing, so the map will change.
        if !map.isComplete || !masters.allSatisfy(ready.contains) { isOutdated = true }
        var actions = masters.sorted { $0.description < $1.description }.compactMap { open($0) }
        let others = opened.subtracting(masters)
        for node in unlisted.intersection(others) {
            opened.remove(node)
            ready.removeAll { $0 == node }
            actions.append(.close(node))
        }
        unlisted = others.intersection(opened)
        if !changed.isEmpty { actions.append(.moved(changed)) }
        return actions
    }

    private mutating func open(_ node: RedisURL.Address) -> TopologyAction? {
        unlisted.remove(node)
        guard opened.count < SlotMap.maximumNodes, opened.insert(node).inserted else { return nil }
        return .open(node)
    }
}
