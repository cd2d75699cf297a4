internal import MartletCore

/// Where commands go, and whether they go there again: events and times in, actions out; without I/O or a clock.
///
/// A command ends with a reply, or with an error at its deadline at the latest. It is sent again only if it has not been
/// executed, or if executing it twice is the same as once.
struct RedisRouting: Sendable {
    typealias Address = RedisURL.Address
    /// Identifies a command.
    typealias Ticket = UInt64

    /// What routing needs to know of a command.
    struct Request: Sendable {
        /// `nil` if any node can execute it.
        var slot: HashSlot?
        var deadline: MonotonicTime
        var traits: RedisCommandTraits

        init(slot: HashSlot?, deadline: MonotonicTime, traits: RedisCommandTraits) {
            (self.slot, self.deadline, self.traits) = (slot, deadline, traits)
        }
    }

    /// How an attempt ended.
    enum Outcome: Sendable {
        case reply
        case redirected(RedisRedirect)
        case failed(StoreError)
    }

    enum Action: Sendable {
        case send(Ticket, to: Address, isAsking: Bool)
        /// The command ends: with its last reply, or with an error.
        case finish(Ticket, StoreError?)
        case topology(TopologyAction)
    }

    /// The state of the connections to a node.
    private enum NodeState {
        case connecting
        case ready
        case down(StoreError)

        var isDown: Bool { if case .down = self { true } else { false } }
    }

    private enum Phase {
        case sent(Address)
        /// Waits for the connection to a node.
        case waiting(Address)
        /// Waits until it is known which node has the key.
        case searching
        case paused(until: MonotonicTime)
    }

    private struct Entry {
        let request: Request
        var phase: Phase
        var redirects = 0
        var pauses = 0
        var repetitions = 0
        /// The error of the last attempt.
        var error: StoreError?
    }

    /// The maximum number of redirects of a command.
    static let maximumRedirects = 5
    private static let maximumRepetitions = 2
    private static let shortestPause = Duration.milliseconds(2)
    private static let longestPause = Duration.milliseconds(32)

    private var topology: any RedisTopology
    private var nodes: [Address: NodeState] = [:]
    private var entries: [Ticket: Entry] = [:]
    /// Those that have not been sent, or wait to be sent again.
    private var unsent: Set<Ticket> = []
    /// Those of `nodes` that the topology does not know.
    private var asked = AskedNodes()
    /// How many maps there were when the asked nodes were last compared with one.
    private var mapsSeen = 0

    init(_ topology: any RedisTopology) { self.topology = topology }

    /// When to call `tick`.
    var nextTick: MonotonicTime? {
        var next = topology.nextTick
        if let expiry = asked.nextExpiry { next = next.map { min($0, expiry) } ?? expiry }
        for ticket in unsent {
            guard let entry = entries[ticket] else { continue }
            let time: MonotonicTime
            switch entry.phase {
            case .sent: continue
            case .waiting, .searching: time = entry.request.deadline
            case .paused(let until): time = until
            }
            next = next.map { min($0, time) } ?? time
        }
        return next
    }

    /// The number of commands that have not ended.
    var count: Int { entries.count }
    /// The number of nodes with connections.
    var nodeCount: Int { nodes.count }
    var masters: [Address] { topology.masters }
    /// The node to subscribe on.
    var anyNode: Address? { topology.node(of: nil) }

    func node(of slot: HashSlot) -> Address? { topology.node(of: slot) }

    func isReady(_ node: Address) -> Bool { if case .ready = nodes[node] { true } else { false } }

    /// Whether commands can be executed, at least some of them.
    var isAvailable: Bool { topology.masters.contains { isReady($0) } }

    /// Whether no node can be reached.
    var isCutOff: Bool {
        let known = nodes.filter { !asked.contains($0.key) }
        return !known.isEmpty && known.values.allSatisfy(\.isDown)
    }

    /// The number of slots that no node has.
    var unassigned: Int { topology.unassigned }
    /// The nodes that are asked where keys are, in a cluster.
    var known: [Address] { nodes.keys.filter { !asked.contains($0) } }

    /// Why the last attempt to reach a node failed; `nil` if it is connected, or for the first time being so.
    func failure(of node: Address) -> StoreError? {
        if case .down(let error) = nodes[node] { error } else { nil }
    }

    mutating func start(at now: MonotonicTime) -> [Action] { perform(topology.start(at: now), at: now) }

    mutating func submit(_ ticket: Ticket, _ request: Request, at now: MonotonicTime) -> [Action] {
        entries[ticket] = Entry(request: request, phase: .searching)
        var actions: [Action] = []
        dispatch(ticket, at: now, &actions)
        return actions
    }

    /// An attempt has ended.
    mutating func ended(_ ticket: Ticket, _ outcome: Outcome, at now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        guard let entry = entries[ticket], case .sent(let node) = entry.phase else { return actions }
        switch outcome {
        case .reply: finish(ticket, nil, &actions)
        case .redirected(let redirect): follow(redirect, ticket, entry, from: node, at: now, &actions)
        case .failed(let error): retry(ticket, entry, after: error, at: now, &actions)
        }
        return actions
    }

    mutating func nodeReady(_ node: Address, at now: MonotonicTime) -> [Action] { update(node, .ready, at: now) }

    mutating func nodeDown(_ node: Address, _ error: StoreError, at now: MonotonicTime) -> [Action] {
        update(node, .down(error), at: now)
    }

    private mutating func update(_ node: Address, _ state: NodeState, at now: MonotonicTime) -> [Action] {
        guard nodes[node] != nil else { return [] }
        nodes[node] = state
        var actions: [Action] = []
        if !asked.contains(node) {
            let list = state.isDown ? topology.nodeDown(node, at: now) : topology.nodeReady(node, at: now)
            perform(list, at: now, &actions)
        }
        resume(at: now, &actions) { if case .waiting(node) = $0 { true } else { false } }
        return actions
    }

    mutating func sentinelReady(_ sentinel: Address, at now: MonotonicTime) -> [Action] {
        perform(topology.sentinelReady(sentinel, at: now), at: now)
    }

    mutating func sentinelDown(_ sentinel: Address) { topology.sentinelDown(sentinel) }

    mutating func suspect(at now: MonotonicTime) -> [Action] {
        perform(topology.suspect(at: now), at: now)
    }

    mutating func answered(
        _ question: TopologyQuestion, by server: Address, _ reply: RedisReply?, at now: MonotonicTime
    ) -> [Action] {
        perform(topology.answered(question, by: server, reply, at: now), at: now)
    }

    mutating func tick(at now: MonotonicTime) -> [Action] {
        var actions = perform(topology.tick(at: now), at: now)
        close(asked.expire(at: now, hasNewMap: false, busy: busy), &actions)
        resume(at: now, &actions) { if case .paused(let until) = $0 { until <= now } else { false } }
        for ticket in unsent.sorted() {
            guard let entry = entries[ticket], entry.request.deadline <= now else { continue }
            finish(ticket, entry.error ?? .timeout, &actions)
        }
        return actions
    }

    private mutating func dispatch(
        _ ticket: Ticket, to preferred: Address? = nil, isAsking: Bool = false, at now: MonotonicTime,
        _ actions: inout [Action]
    ) {
        guard let entry = entries[ticket] else { return }
        guard now < entry.request.deadline else { return finish(ticket, entry.error ?? .timeout, &actions) }
        guard let node = preferred ?? topology.node(of: entry.request.slot) else {
            // Until a server replies; without one that can be asked, none will.
            if isCutOff { return finish(ticket, .notConnected, &actions) }
            return setPhase(.searching, of: ticket)
        }
        asked.use(node, at: now)
        switch nodes[node] {
        case .ready:
            setPhase(.sent(node), of: ticket)
            actions.append(.send(ticket, to: node, isAsking: isAsking))
        case .connecting: setPhase(.waiting(node), of: ticket)
        // The error of an attempt says more than that there will be no other.
        case .down(let error): finish(ticket, entry.error ?? .notConnected(error), &actions)
        case nil:
            guard let closed = asked.admit(node, at: now, busy: busy) else {
                return finish(ticket, .notConnected, &actions)
            }
            close(closed, &actions)
            setPhase(.waiting(node), of: ticket)
            open(node, &actions)
        }
    }

    private mutating func follow(
        _ redirect: RedisRedirect, _ ticket: Ticket, _ entry: Entry, from node: Address, at now: MonotonicTime,
        _ actions: inout [Action]
    ) {
        guard topology.canChange, let target = redirect.address(from: node),
            entry.request.slot == nil || entry.request.slot?.number == redirect.slot
        else { return finish(ticket, RedisErrorReply.storeError("MOVED"), &actions) }
        // A script whose keys are being moved one by one would find some here and others there.
        if redirect.isTemporary, entry.request.traits.contains(.hasManyKeys) {
            return pause(ticket, entry, after: RedisErrorReply.storeError("TRYAGAIN"), at: now, &actions)
        }
        guard entry.redirects < RedisRouting.maximumRedirects else {
            return finish(ticket, .tooManyRedirects, &actions)
        }
        entries[ticket]?.redirects += 1
        if !redirect.isTemporary {
            perform(topology.moved(HashSlot(redirect.slot), to: target, at: now), at: now, &actions)
        }
        // Two nodes that name each other, or one that names itself, may need time to agree.
        if target == node || entry.redirects > 1 {
            return pause(ticket, entry, after: .tooManyRedirects, at: now, &actions)
        }
        dispatch(ticket, to: target, isAsking: redirect.isTemporary, at: now, &actions)
    }

    private mutating func retry(
        _ ticket: Ticket, _ entry: Entry, after error: StoreError, at now: MonotonicTime, _ actions: inout [Action]
    ) {
        switch error.code {
        // Not executed.
        case .redisTryAgain where topology.canChange: pause(ticket, entry, after: error, at: now, &actions)
        case .redisClusterDown where topology.canChange, .redisReadOnly where topology.canChange:
            perform(topology.suspect(at: now), at: now, &actions)
            pause(ticket, entry, after: error, at: now, &actions)
        // Not sent.
        case .redisNotConnected where topology.canChange && entry.repetitions < RedisRouting.maximumRepetitions:
            entries[ticket]?.repetitions += 1
            pause(ticket, entry, after: error, at: now, &actions)
        // Perhaps executed.
        case .redisConnectionLost
        where entry.request.traits.contains(.isRepeatable) && entry.repetitions < RedisRouting.maximumRepetitions:
            entries[ticket]?.repetitions += 1
            pause(ticket, entry, after: error, at: now, &actions)
        default: finish(ticket, error, &actions)
        }
    }

    /// Tries again after a pause that grows with each one, unless the deadline is nearer.
    private mutating func pause(
        _ ticket: Ticket, _ entry: Entry, after error: StoreError, at now: MonotonicTime, _ actions: inout [Action]
    ) {
        let length = min(RedisRouting.shortestPause * (1 << min(entry.pauses, 10)), RedisRouting.longestPause)
        let end = now + length
        guard end < entry.request.deadline else { return finish(ticket, error, &actions) }
        entries[ticket]?.pauses += 1
        entries[ticket]?.error = error
        setPhase(.paused(until: end), of: ticket)
    }

    private mutating func resume(at now: MonotonicTime, _ actions: inout [Action], where isDue: (Phase) -> Bool) {
        let due = unsent.filter { ticket in entries[ticket].map { isDue($0.phase) } ?? false }
        for ticket in due.sorted() { dispatch(ticket, at: now, &actions) }
    }

    private mutating func setPhase(_ phase: Phase, of ticket: Ticket) {
        entries[ticket]?.phase = phase
        if case .sent = phase { unsent.remove(ticket) } else { unsent.insert(ticket) }
    }

    private mutating func finish(_ ticket: Ticket, _ error: StoreError?, _ actions: inout [Action]) {
        entries[ticket] = nil
        unsent.remove(ticket)
        actions.append(.finish(ticket, error))
    }

    private mutating func open(_ node: Address, _ actions: inout [Action]) {
        nodes[node] = .connecting
        actions.append(.topology(.open(node)))
    }

    private mutating func close(_ nodes: [Address], _ actions: inout [Action]) {
        for node in nodes {
            self.nodes[node] = nil
            actions.append(.topology(.close(node)))
        }
    }

    /// The nodes that commands have been sent to, or wait for.
    private var busy: Set<Address> {
        var nodes: Set<Address> = []
        for entry in entries.values {
            switch entry.phase {
            case .sent(let node), .waiting(let node): nodes.insert(node)
            case .searching, .paused: break
            }
        }
        return nodes
    }

    private mutating func perform(_ list: [TopologyAction], at now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        perform(list, at: now, &actions)
        return actions
    }

    private mutating func perform(_ list: [TopologyAction], at now: MonotonicTime, _ actions: inout [Action]) {
        var hasMoved = false
        for action in list {
            switch action {
            case .open(let node):
                if nodes[node] == nil { open(node, &actions) }
                // The topology knows it from now on.
                if asked.remove(node), isReady(node) { perform(topology.nodeReady(node, at: now), at: now, &actions) }
                continue
            case .close(let node):
                nodes[node] = nil
                _ = asked.remove(node)
            case .moved: hasMoved = true
            case .openSentinel, .closeSentinel, .ask, .epochLowered: break
            }
            actions.append(.topology(action))
        }
        if topology.maps != mapsSeen {
            mapsSeen = topology.maps
            close(asked.expire(at: now, hasNewMap: true, busy: busy), &actions)
        }
        guard hasMoved else { return }
        resume(at: now, &actions) { phase in
            switch phase {
            case .searching, .waiting: true
            case .sent, .paused: false
            }
        }
    }
}

extension StoreError {
    static let tooManyRedirects = StoreError(
        code: .redisTooManyRedirects, message: "Redis nodes redirected a command too often")

    /// The error of a command includes the reason of the outage.
    static func notConnected(_ reason: StoreError) -> StoreError {
        StoreError(code: .redisNotConnected, message: "not connected to Redis: \(reason.message)")
    }
}
