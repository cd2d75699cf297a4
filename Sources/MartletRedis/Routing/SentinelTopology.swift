internal import MartletCore

/// The master that Redis Sentinel names.
///
/// All sentinels are asked every second, and when one of them announces another master. The reply with the highest
/// `config-epoch` counts, which never decreases; of equal ones, the one that most sentinels give.
struct SentinelTopology: RedisTopology {
    private static let interval = Duration.seconds(1)
    /// The list of sentinels is refreshed every so many rounds.
    private static let roundsPerList = 10

    private struct View {
        let master: RedisURL.Address
        let epoch: Int64
    }

    private let seeds: [RedisURL.Address]
    /// Known sentinels, with what each said last.
    private var sentinels: [RedisURL.Address: View?] = [:]
    private var ready: Set<RedisURL.Address> = []
    private var master: RedisURL.Address?
    private var epoch: Int64 = 0
    private var rounds = 0
    private var nextRound: MonotonicTime?

    init(sentinels: [RedisURL.Address]) { seeds = sentinels }

    var canChange: Bool { true }
    var masters: [RedisURL.Address] { master.map { [$0] } ?? [] }
    var nextTick: MonotonicTime? { nextRound }
    func node(of slot: HashSlot?) -> RedisURL.Address? { master }

    mutating func start(at now: MonotonicTime) -> [TopologyAction] {
        nextRound = now + SentinelTopology.interval
        return seeds.compactMap { add($0) }
    }

    mutating func tick(at now: MonotonicTime) -> [TopologyAction] {
        guard let nextRound, now >= nextRound else { return [] }
        rounds &+= 1
        var actions = suspect(at: now)
        if rounds % SentinelTopology.roundsPerList == 0, let sentinel = ready.first {
            actions.append(.ask(.sentinels, sentinel))
        }
        return actions
    }

    mutating func suspect(at now: MonotonicTime) -> [TopologyAction] {
        nextRound = now + SentinelTopology.interval
        return ready.sorted { $0.description < $1.description }.map { .ask(.master, $0) }
    }

    mutating func nodeDown(_ node: RedisURL.Address, at now: MonotonicTime) -> [TopologyAction] {
        node == master ? suspect(at: now) : []
    }

    mutating func sentinelReady(
        _ sentinel: RedisURL.Address, at now: MonotonicTime
    ) -> [TopologyAction] {
        guard sentinels[sentinel] != nil else { return [] }
        ready.insert(sentinel)
        return [.ask(.master, sentinel), .ask(.sentinels, sentinel)]
    }

    mutating func answered(
        _ question: TopologyQuestion, by server: RedisURL.Address, _ reply: RedisReply?, at now: MonotonicTime
    ) -> [TopologyAction] {
        guard sentinels[server] != nil, let reply else { return [] }
        switch question {
        case .slots: return []
        case .sentinels: return refresh(reply)
        case .master:
            guard let fields = SentinelFields(reply), let address = fields.address,
                let epoch = fields["config-epoch"].flatMap({ Int64($0) }), epoch >= 0
            else { return [] }
            sentinels[server] = .some(View(master: address, epoch: epoch))
            return choose()
        }
    }

    private mutating func choose() -> [TopologyAction] {
        let views = sentinels.values.compactMap { $0 }
        guard let highest = views.map(\.epoch).max(), highest >= epoch else { return [] }
        var votes: [RedisURL.Address: Int] = [:]
        for view in views where view.epoch == highest { votes[view.master, default: 0] += 1 }
        let most = votes.values.max() ?? 0
        if let master, votes[master] == most {
            epoch = highest
            return []
        }
        guard let next = votes.filter({ $0.value == most }).keys.min(by: { $0.description < $1.description }) else {
            return []
        }
        epoch = highest
        let old = master
        master = next
        return (old.map { [.close($0)] } ?? []) + [.open(next), .moved(nil)]
    }

    /// Replaces the list of sentinels by the seeds and those that a sentinel knows.
    private mutating func refresh(_ reply: RedisReply) -> [TopologyAction] {
        guard case .array(let list) = reply, list.count <= RedisURL.maximumSeeds else { return [] }
        let listed = list.compactMap { SentinelFields($0)?.address }
        let wanted = Set(seeds + listed)
        guard wanted.count <= 2 * RedisURL.maximumSeeds else { return [] }
        var actions: [TopologyAction] = []
        // The one that was asked does not list itself: it stays until another one leaves it out, too.
        if listed.count + 1 >= sentinels.count {
            return wanted.subtracting(sentinels.keys).compactMap { add($0) }
        }
        for sentinel in sentinels.keys where !wanted.contains(sentinel) && !ready.contains(sentinel) {
            sentinels[sentinel] = nil
            actions.append(.closeSentinel(sentinel))
        }
        return actions + wanted.subtracting(sentinels.keys).compactMap { add($0) }
    }

    private mutating func add(_ sentinel: RedisURL.Address) -> TopologyAction? {
        guard sentinels[sentinel] == nil else { return nil }
        sentinels[sentinel] = .some(nil)
        return .openSentinel(sentinel)
    }

    mutating func sentinelDown(_ sentinel: RedisURL.Address) { ready.remove(sentinel) }
}

/// An instance as a sentinel describes it: an array of names and values.
struct SentinelFields {
    private var values: [String: String] = [:]

    init?(_ reply: RedisReply) {
        guard case .array(let parts) = reply, parts.count.isMultiple(of: 2), parts.count <= 256 else { return nil }
        for index in stride(from: 0, to: parts.count, by: 2) {
            guard case .bytes(let name) = parts[index], case .bytes(let value) = parts[index + 1],
                let name = String(validating: name, as: UTF8.self),
                let value = String(validating: value, as: UTF8.self)
            else { return nil }
            values[name] = value
        }
    }

    subscript(_ name: String) -> String? { values[name] }

    var address: RedisURL.Address? {
        guard let host = values["ip"], !host.isEmpty, host != "?", RedisRedirect.isHost(host),
            let port = values["port"].flatMap({ UInt16(digits: Array($0.utf8)) }), port > 0
        else { return nil }
        return .tcp(host: host, port: port)
    }
}
