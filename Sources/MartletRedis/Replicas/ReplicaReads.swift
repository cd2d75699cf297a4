internal import MartletCore

/// Which replicas there are, which of them are connected, and which one serves a read: events and times in, actions out;
/// without I/O or a clock.
///
/// Nothing is connected or asked until a read needs a master's replicas. A replica serves reads while it says that its
/// link to a master works. While its master cannot be reached it serves them whatever it says of the link, because then
/// the link cannot work: what is read from replicas has its own time, and is refused when that is too old.
struct ReplicaReads: Sendable {
    typealias Address = RedisURL.Address

    enum Action: Sendable, Equatable {
        case open(Address)
        case close(Address)
        /// Ask a replica for its role.
        case check(Address)
        /// Ask which replicas there are.
        case ask
    }

    /// The state of a replica.
    private enum State {
        /// Known, and not connected.
        case idle
        case connecting
        /// - Parameter isLinked: whether it last said that it receives from a master.
        case ready(isLinked: Bool)
        /// The last attempt or the connection has failed; another attempt follows.
        case down

        var isOpen: Bool { if case .idle = self { false } else { true } }
        var isDown: Bool { if case .down = self { true } else { false } }
    }

    private struct Replica {
        let master: Address
        var state = State.idle
        /// How many lists in a row have left it out.
        var omissions = 0
    }

    /// The maximum number of replicas that are connected, of each master.
    static let connectedPerMaster = 2
    /// The maximum number of masters whose replicas are connected: issuers have few keys.
    static let maximumMasters = 16
    /// The maximum number of replicas that are known of each master; further ones are ignored.
    static let knownPerMaster = 16
    /// A replica is given up after so many omissions: one server alone may be wrong.
    static let maximumOmissions = 2
    static let checkInterval = Duration.seconds(1)
    /// How often it is asked which replicas there are.
    static let askInterval = Duration.seconds(5)
    /// While none is known.
    static let firstAskInterval = Duration.seconds(1)

    /// Whether the list of replicas has to be asked for; otherwise it comes with replies that are needed anyway.
    private let asks: Bool
    /// In the order in which they were learnt, which is the order in which they are connected.
    private var known: [(address: Address, replica: Replica)] = []
    /// The masters whose replicas a read has needed.
    private var wanted: [Address] = []
    private var lastAsk: MonotonicTime?
    private var nextCheck: MonotonicTime?
    private var turn = 0

    init(asks: Bool) { self.asks = asks }

    /// When to call `tick`; `nil` while nothing has been read.
    var nextTick: MonotonicTime? {
        guard !wanted.isEmpty else { return nil }
        guard asks, let lastAsk else { return nextCheck }
        let nextAsk = lastAsk + askInterval
        return nextCheck.map { min($0, nextAsk) } ?? nextAsk
    }

    /// The replicas with connections, or attempts at one.
    var opened: [Address] { known.filter(\.replica.state.isOpen).map(\.address) }

    private var askInterval: Duration { known.isEmpty ? Self.firstAskInterval : Self.askInterval }

    /// Chooses the replica for a read; `nil` for the master.
    /// - Parameter isMasterReady: whether the master can be asked instead.
    mutating func choose(
        of master: Address, isMasterReady: Bool, at now: MonotonicTime
    ) -> (replica: Address?, actions: [Action]) {
        var actions: [Action] = []
        if !wanted.contains(master), wanted.count < Self.maximumMasters {
            wanted.append(master)
            if nextCheck == nil { nextCheck = now + Self.checkInterval }
            actions += ask(at: now) + openMore()
        }
        let able = known.filter { address, replica in
            guard replica.master == master, case .ready(let isLinked) = replica.state else { return false }
            return isLinked || !isMasterReady
        }
        let linked = able.filter { if case .ready(isLinked: true) = $0.replica.state { true } else { false } }
        let best = linked.isEmpty ? able : linked
        guard !best.isEmpty else { return (nil, actions) }
        turn = (turn &+ 1) & 0xFFFF
        return (best[turn % best.count].address, actions)
    }

    /// The replicas of some masters, as a server lists them.
    /// - Parameter masters: all masters that there are.
    mutating func learnt(_ lists: [Address: [Address]], masters: [Address]) -> [Action] {
        for (master, list) in lists.sorted(by: { $0.key.description < $1.key.description }) {
            let listed = list.filter { $0 != master && !masters.contains($0) }.prefix(Self.knownPerMaster)
            for index in known.indices where known[index].replica.master == master {
                let isListed = listed.contains(known[index].address)
                known[index].replica.omissions = isListed ? 0 : known[index].replica.omissions + 1
            }
            for address in listed { add(address, of: master) }
        }
        return forget(masters) + openMore()
    }

    /// Other servers are masters now.
    mutating func mastersChanged(_ masters: [Address], at now: MonotonicTime) -> [Action] {
        guard !wanted.isEmpty else { return [] }
        wanted.removeAll { !masters.contains($0) }
        lastAsk = nil
        return forget(masters) + ask(at: now)
    }

    /// A replica accepts commands.
    mutating func ready(_ replica: Address) -> [Action] {
        guard let index = index(of: replica), known[index].replica.state.isOpen else { return [] }
        known[index].replica.state = .ready(isLinked: false)
        return [.check(replica)]
    }

    /// The connection to a replica has ended, or an attempt has failed.
    mutating func down(_ replica: Address) {
        guard let index = index(of: replica), known[index].replica.state.isOpen else { return }
        known[index].replica.state = .down
    }

    /// A replica has said what it is.
    /// - Parameter isLinked: whether it receives from a master.
    mutating func checked(_ replica: Address, isLinked: Bool) {
        guard let index = index(of: replica), case .ready = known[index].replica.state else { return }
        known[index].replica.state = .ready(isLinked: isLinked)
    }

    mutating func tick(at now: MonotonicTime) -> [Action] {
        guard !wanted.isEmpty else { return [] }
        var actions: [Action] = []
        if let nextCheck, nextCheck <= now {
            self.nextCheck = now + Self.checkInterval
            for (address, replica) in known { if case .ready = replica.state { actions.append(.check(address)) } }
            actions += exchange() + openMore()
        }
        return actions + ask(at: now)
    }
}

extension ReplicaReads {
    private func index(of address: Address) -> Int? { known.firstIndex { $0.address == address } }

    private mutating func add(_ address: Address, of master: Address) {
        if let index = index(of: address) {
            guard known[index].replica.master != master else { return }
            known[index].replica = Replica(master: master, state: known[index].replica.state)
            return
        }
        let count = known.count { $0.replica.master == master }
        guard count < Self.knownPerMaster, known.count < SlotMap.maximumNodes else { return }
        known.append((address, Replica(master: master)))
    }

    /// Gives up replicas that were left out, that are masters now, or whose master is none any more.
    private mutating func forget(_ masters: [Address]) -> [Action] {
        var actions: [Action] = []
        known.removeAll { address, replica in
            let isGone = replica.omissions >= Self.maximumOmissions || masters.contains(address)
            guard isGone || !masters.contains(replica.master) else { return false }
            if replica.state.isOpen { actions.append(.close(address)) }
            return true
        }
        return actions
    }

    private mutating func ask(at now: MonotonicTime) -> [Action] {
        guard asks, !wanted.isEmpty else { return [] }
        if let lastAsk, now.since(lastAsk) < askInterval { return [] }
        lastAsk = now
        return [.ask]
    }

    /// Connects to more replicas of masters that are read.
    private mutating func openMore() -> [Action] {
        var actions: [Action] = []
        for master in wanted {
            var count = known.count { $0.replica.master == master && $0.replica.state.isOpen }
            for index in known.indices where known[index].replica.master == master {
                guard count < Self.connectedPerMaster else { break }
                guard !known[index].replica.state.isOpen else { continue }
                known[index].replica.state = .connecting
                actions.append(.open(known[index].address))
                count += 1
            }
        }
        return actions
    }

    /// Gives up replicas that do not respond, where there are others to try; they are tried again after those.
    private mutating func exchange() -> [Action] {
        var actions: [Action] = []
        for master in wanted where known.contains(where: { $0.replica.master == master && !$0.replica.state.isOpen }) {
            let index = known.firstIndex { $0.replica.master == master && $0.replica.state.isDown }
            guard let index else { continue }
            var (address, replica) = known.remove(at: index)
            replica.state = .idle
            known.append((address, replica))
            actions.append(.close(address))
        }
        return actions
    }
}
