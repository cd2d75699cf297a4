internal import MartletCore

/// The master that Redis Sentinel names.
///
/// All sentinels are asked every second, and when one of them announces another master. The reply with the highest
/// `config-epoch` counts; of equal ones, the one that most sentinels give. The epoch decreases only to what a majority
/// has agreed on for 3 s, and whose master can be reached: sentinels that are set up anew begin at 0.
struct SentinelTopology: RedisTopology {
    typealias Address = RedisURL.Address

    private static let interval = Duration.seconds(1)
    /// Between questions that have a reason, such as announcements.
    private static let shortestInterval = Duration.milliseconds(100)
    /// The lists of sentinels are refreshed every so many rounds.
    private static let roundsPerList = 10
    /// How long a majority must agree on an older epoch.
    private static let agreementTime = Duration.seconds(3)
    /// A master that cannot be reached for so long is not defended against a minority.
    private static let defenseTime = Duration.seconds(2)
    /// An epoch grows by one with each failover that is attempted; a minority may be so far ahead of what is known.
    private static let greatestLead: Int64 = 64

    /// A majority that agrees on an older epoch.
    private struct Agreement {
        let claim: SentinelVotes.Claim
        let since: MonotonicTime
        /// Whether its master is being connected, beside the present one.
        var isTried = false
    }

    private var list: SentinelList
    private var votes = SentinelVotes()
    private var ready: Set<Address> = []
    private var master: Address?
    private var epoch: Int64 = 0
    /// Since when the master has not been reached; `nil` while it is connected.
    private var lostAt: MonotonicTime?
    /// Whether the master has ever called itself one.
    private var wasReached = false
    private var agreement: Agreement?
    /// Sentinels with newer epochs than the one that a majority has agreed on.
    private var outvoted: Set<Address> = []
    private var rounds = 0
    private var lastRound: MonotonicTime?
    private var nextRound: MonotonicTime?

    init(sentinels: [Address]) { list = SentinelList(seeds: sentinels) }

    var canChange: Bool { true }
    var masters: [Address] { master.map { [$0] } ?? [] }
    var nextTick: MonotonicTime? { nextRound }
    func node(of slot: HashSlot?) -> Address? { master }

    mutating func start(at now: MonotonicTime) -> [TopologyAction] {
        nextRound = now + SentinelTopology.interval
        return list.seeds.map { .openSentinel($0) }
    }

    mutating func tick(at now: MonotonicTime) -> [TopologyAction] {
        guard let nextRound, now >= nextRound else { return [] }
        rounds &+= 1
        var actions = askAll(.master)
        if rounds % SentinelTopology.roundsPerList == 0 { actions += askAll(.sentinels) }
        lastRound = now
        self.nextRound = now + SentinelTopology.interval
        return actions
    }

    mutating func suspect(at now: MonotonicTime) -> [TopologyAction] {
        if let lastRound, now.since(lastRound) < SentinelTopology.shortestInterval {
            nextRound = lastRound + SentinelTopology.shortestInterval
            return []
        }
        lastRound = now
        nextRound = now + SentinelTopology.interval
        return askAll(.master)
    }

    private func askAll(_ question: TopologyQuestion) -> [TopologyAction] {
        ready.sorted { $0.description < $1.description }.map { .ask(question, $0) }
    }

    mutating func nodeReady(_ node: Address, at now: MonotonicTime) -> [TopologyAction] {
        if node == master {
            lostAt = nil
            wasReached = true
        } else if let agreement, agreement.isTried, node == agreement.claim.master {
            guard votes.majority(at: now) == agreement.claim else { return endAgreement() }
            return accept(agreement.claim, at: now)
        }
        return []
    }

    mutating func nodeDown(_ node: Address, at now: MonotonicTime) -> [TopologyAction] {
        guard node == master else { return [] }
        lostAt = lostAt ?? now
        return suspect(at: now)
    }

    mutating func sentinelReady(_ sentinel: Address, at now: MonotonicTime) -> [TopologyAction] {
        guard list.known.contains(sentinel) else { return [] }
        ready.insert(sentinel)
        return [.ask(.master, sentinel), .ask(.sentinels, sentinel)]
    }

    mutating func sentinelDown(_ sentinel: Address) {
        ready.remove(sentinel)
        list.lost(sentinel)
    }

    mutating func answered(
        _ question: TopologyQuestion, by server: Address, _ reply: RedisReply?, at now: MonotonicTime
    ) -> [TopologyAction] {
        guard list.known.contains(server), let reply else { return [] }
        switch question {
        case .slots: return []
        case .sentinels: return refresh(reply, by: server)
        case .master:
            guard let fields = SentinelFields(reply), let address = fields.address,
                let epoch = fields["config-epoch"].flatMap({ Int64($0) }), epoch >= 0
            else { return [] }
            votes.set(.init(master: address, epoch: epoch), of: server, at: now)
            return choose(at: now)
        }
    }

    private mutating func refresh(_ reply: RedisReply, by server: Address) -> [TopologyAction] {
        guard case .array(let parts) = reply, parts.count <= RedisURL.maximumSeeds else { return [] }
        let changes = list.answered(parts.compactMap { SentinelFields($0)?.address }, by: server)
        for sentinel in changes.removed {
            ready.remove(sentinel)
            votes.remove(sentinel)
            outvoted.remove(sentinel)
        }
        return changes.removed.map { .closeSentinel($0) } + changes.added.map { .openSentinel($0) }
    }
}

// MARK: - Which master counts

extension SentinelTopology {
    private mutating func choose(at now: MonotonicTime) -> [TopologyAction] {
        let (claims, majority) = (votes.current(at: now), votes.majority(at: now))
        outvoted = outvoted.filter { sentinel in claims[sentinel].map { $0.epoch > epoch } ?? true }
        let counted = claims.filter { counts($0.value, of: $0.key, against: majority, at: now) }.values
        return follow(Array(counted), at: now) + reconsider(majority, at: now)
    }

    /// Whether what a sentinel says counts.
    private func counts(
        _ claim: SentinelVotes.Claim, of sentinel: Address, against majority: SentinelVotes.Claim?,
        at now: MonotonicTime
    ) -> Bool {
        guard master != nil, claim.epoch > epoch else { return true }
        if let lostAt, now.since(lostAt) >= SentinelTopology.defenseTime { return true }
        guard !outvoted.contains(sentinel) else { return false }
        return claim == majority || !isFar(claim.epoch, from: epoch)
    }

    /// Neither is negative.
    private func isFar(_ epoch: Int64, from lower: Int64) -> Bool { epoch &- lower > SentinelTopology.greatestLead }

    /// Follows the highest epoch.
    private mutating func follow(_ claims: [SentinelVotes.Claim], at now: MonotonicTime) -> [TopologyAction] {
        guard let highest = claims.map(\.epoch).max(), highest >= epoch else { return [] }
        var counts: [Address: Int] = [:]
        for claim in claims where claim.epoch == highest { counts[claim.master, default: 0] += 1 }
        let most = counts.values.max() ?? 0
        epoch = highest
        if let master, counts[master] == most { return [] }
        let first = counts.filter { $0.value == most }.keys.min { $0.description < $1.description }
        guard let next = first else { return [] }
        // The one that is being tried may be the next one.
        var actions = endAgreement().filter { $0 != .close(next) }
        if let master { actions.append(.close(master)) }
        (master, lostAt, wasReached) = (next, now, false)
        return actions + [.open(next), .moved(nil)]
    }

    /// Tries the master of a majority that agrees on an older epoch.
    private mutating func reconsider(_ majority: SentinelVotes.Claim?, at now: MonotonicTime) -> [TopologyAction] {
        guard let majority, majority.epoch < epoch else { return endAgreement() }
        var actions: [TopologyAction] = []
        if agreement?.claim != majority {
            actions = endAgreement()
            agreement = Agreement(claim: majority, since: now)
        }
        guard let current = agreement, !current.isTried else { return actions }
        // The master of the newer epoch may not even exist.
        let isUrgent = !wasReached && isFar(epoch, from: majority.epoch)
        guard isUrgent || now.since(current.since) >= SentinelTopology.agreementTime else { return actions }
        if majority.master == master { return lostAt == nil ? actions + accept(majority, at: now) : actions }
        agreement?.isTried = true
        return actions + [.open(majority.master)]
    }

    /// Accepts an older epoch, whose master is connected.
    private mutating func accept(_ claim: SentinelVotes.Claim, at now: MonotonicTime) -> [TopologyAction] {
        outvoted = Set(votes.current(at: now).filter { $0.value.epoch > claim.epoch }.keys)
        agreement = nil
        var actions: [TopologyAction] = [.epochLowered(from: epoch, to: claim.epoch)]
        epoch = claim.epoch
        guard master != claim.master else { return actions }
        if let master { actions.append(.close(master)) }
        (master, lostAt, wasReached) = (claim.master, nil, true)
        return actions + [.moved(nil)]
    }

    private mutating func endAgreement() -> [TopologyAction] {
        defer { agreement = nil }
        guard let agreement, agreement.isTried, agreement.claim.master != master else { return [] }
        return [.close(agreement.claim.master)]
    }
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
