import MartletTesting

/// What may happen in a search, and how often.
struct ReplicationAlphabet: Sendable {
    /// Its name.
    var testDescription = ""
    var instances = 2
    var sessions = 1
    /// Steps of clients, the first login included.
    var steps = 4
    var failovers = 1
    /// The lengths of time that pass, and how often one does.
    var waits = [1_000]
    var maximumWaits = 2
    var deaths = 0
    /// Connections that are lost without their server.
    var disconnects = 0
    var lostReplies = 0
    var revokes = true
    var refreshes = true
    /// Refresh tokens that were used are presented, too.
    var presentsUsed = false
    /// A refresh may be between its scripts while something else happens.
    var dividesRefreshes = false
    var copies = false
    /// Whether a master that is replaced may still respond, or only crashes.
    var partitions = false
    var messages = true
    /// Time passes before the first failover, too.
    var waitsAtFirst = true
    /// Writes reach the replica; without it none does before a failover.
    var replicates = true
    /// Clients take steps after the first failover, too.
    var goesOn = true
}

/// A state of the search: the model, and how often something has happened.
struct ReplicationState {
    var model: ReplicationModel
    private var steps = 0
    private var waits = 0
    private var deaths = 0
    private var disconnects = 0
    private var lostReplies = 0

    init(_ model: ReplicationModel) { self.model = model }

    mutating func apply(_ event: ReplicationModel.Event) {
        switch event {
        case .login, .use, .refresh, .read, .revoke: steps += 1
        case .wait: waits += 1
        case .die: deaths += 1
        case .disconnect: disconnects += 1
        case .loseReply: lostReplies += 1
        default: break
        }
        model.apply(event)
    }

    /// Identifies the state.
    var digest: UInt64 {
        var digest = model.digest
        digest.add([steps, waits, deaths, disconnects, lostReplies])
        return digest.value
    }

    /// What may happen next.
    func events(_ alphabet: ReplicationAlphabet) -> [ReplicationModel.Event] {
        var events: [ReplicationModel.Event] = []
        // Which instance serves the first login makes no difference.
        if model.sessions.isEmpty { return model.losesReply ? [.login(at: 0)] : first(alphabet) }
        if steps < alphabet.steps, alphabet.goesOn || model.isMasterUp && model.reign == 0 {
            for index in model.instances.indices where model.isConnected(index) {
                events += clientEvents(at: index, alphabet)
            }
            let hasReplies = !model.losesReply && events.contains(where: \.hasReply)
            if hasReplies, lostReplies < alphabet.lostReplies { events.append(.loseReply) }
        }
        if model.losesReply { return events.filter(\.hasReply) }
        for index in model.instances.indices where model.instances[index].isAlive {
            events += instanceEvents(at: index, alphabet)
        }
        if alphabet.replicates, model.isMasterUp, !model.stream.isEmpty { events.append(.replicate) }
        events += failoverEvents(alphabet)
        let mayWait = alphabet.waitsAtFirst || model.reign > 0
        if mayWait, waits < alphabet.maximumWaits { events += alphabet.waits.map { .wait($0) } }
        return events
    }

    private func first(_ alphabet: ReplicationAlphabet) -> [ReplicationModel.Event] {
        lostReplies < alphabet.lostReplies ? [.login(at: 0), .loseReply] : [.login(at: 0)]
    }

    private func clientEvents(at index: Int, _ alphabet: ReplicationAlphabet) -> [ReplicationModel.Event] {
        var events: [ReplicationModel.Event] = []
        if model.sessions.count < alphabet.sessions { events.append(.login(at: index)) }
        for session in model.sessions.indices {
            let pairs = model.pairs.indices.filter {
                model.pairs[$0].session == session && model.pairs[$0].isAcknowledged
            }
            if alphabet.revokes, !pairs.isEmpty { events.append(.revoke(at: index, session: session)) }
            for pair in alphabet.presentsUsed ? pairs : pairs.suffix(1) where model.instances[index].refresh == nil {
                if alphabet.refreshes { events.append(.refresh(at: index, pair: pair)) }
                if alphabet.dividesRefreshes { events.append(.read(at: index, pair: pair)) }
            }
            if alphabet.copies, let pair = pairs.last { events.append(.use(at: index, pair: pair)) }
        }
        return events
    }

    private func instanceEvents(at index: Int, _ alphabet: ReplicationAlphabet) -> [ReplicationModel.Event] {
        let instance = model.instances[index]
        var events: [ReplicationModel.Event] = []
        if model.isConnected(index), instance.refresh != nil { events.append(.rotate(at: index)) }
        if model.isMasterUp, instance.server != model.master { events.append(.find(at: index)) }
        if model.isAtMaster(index) {
            events += instance.inFlight.indices.map { .repeatWrite(at: index, index: $0) }
            if disconnects < alphabet.disconnects { events.append(.disconnect(at: index)) }
        }
        if alphabet.messages, !instance.messages.isEmpty { events.append(.message(at: index)) }
        if deaths < alphabet.deaths { events.append(.die(at: index)) }
        return events
    }

    private func failoverEvents(_ alphabet: ReplicationAlphabet) -> [ReplicationModel.Event] {
        var events: [ReplicationModel.Event] = []
        if model.reign < alphabet.failovers {
            if model.isMasterUp { events.append(.crash) }
            if model.peer == .replica, alphabet.partitions || !model.isMasterUp { events.append(.promote) }
        }
        if model.peer != .replica, model.isMasterUp { events.append(.rejoin) }
        return events
    }
}

extension ReplicationModel.Event: CustomStringConvertible {
    var description: String {
        func name(_ index: Int) -> String { ["A", "B", "C"][index] }
        return switch self {
        case .login(let index): "\(name(index)) logs in"
        case .use(let index, let pair): "\(name(index)) uses \(pair)"
        case .refresh(let index, let pair): "\(name(index)) refreshes \(pair)"
        case .read(let index, let pair): "\(name(index)) reads \(pair)"
        case .rotate(let index): "\(name(index)) rotates"
        case .revoke(let index, _): "\(name(index)) revokes"
        case .loseReply: "503"
        case .replicate: "replicate"
        case .crash: "crash"
        case .promote: "promote"
        case .rejoin: "rejoin"
        case .find(let index): "\(name(index)) finds"
        case .repeatWrite(let index, let position): "\(name(index)) repeats \(position)"
        case .message(let index): "\(name(index)) hears"
        case .disconnect(let index): "\(name(index)) disconnects"
        case .die(let index): "\(name(index)) dies"
        case .wait(let time): "\(time) ms"
        }
    }

    /// Whether a reply to it can be lost: those of writes.
    fileprivate var hasReply: Bool {
        switch self {
        case .login, .refresh, .rotate, .revoke: true
        default: false
        }
    }
}

/// What a search has found.
struct ReplicationResult {
    /// How many different states were visited, each by a different history.
    var states = 0
    /// The length of the longest history.
    var depth = 0
    /// Whether there was nothing left to visit.
    var isComplete = false
    var violation: ReplicationViolation?
    /// The shortest history that leads to the violation.
    var history: [ReplicationModel.Event] = []

    /// The history in words.
    var text: String { history.map(\.description).joined(separator: ", ") }
}

enum ReplicationSearch {
    /// Visits every state that is reached by the events of an alphabet, by the shortest histories first.
    /// - Parameter limit: the maximum number of states.
    static func run(
        _ alphabet: ReplicationAlphabet, _ rules: ReplicationRules = ReplicationRules(),
        _ conditions: ReplicationConditions = .all, limit: Int = 30_000
    ) -> ReplicationResult {
        var result = ReplicationResult()
        let start = ReplicationModel(instances: alphabet.instances, sessions: alphabet.sessions, rules)
        var frontier = [(state: ReplicationState(start), node: -1)]
        // The event that led to each state, and the state before.
        var nodes: [(event: ReplicationModel.Event, parent: Int)] = []
        var visited: Set<UInt64> = []
        while !frontier.isEmpty {
            var next: [(state: ReplicationState, node: Int)] = []
            result.depth += 1
            for (state, node) in frontier {
                for event in state.events(alphabet) {
                    var reached = state
                    reached.apply(event)
                    guard visited.insert(reached.digest).inserted else { continue }
                    nodes.append((event, node))
                    result.violation = reached.model.violation(conditions)
                    if result.violation != nil { result.history = history(of: nodes.count - 1, nodes) }
                    next.append((reached, nodes.count - 1))
                    result.states = nodes.count
                    if result.violation != nil || nodes.count >= limit { return result }
                }
            }
            frontier = next
        }
        result.isComplete = true
        return result
    }

    private static func history(
        of node: Int, _ nodes: [(event: ReplicationModel.Event, parent: Int)]
    ) -> [ReplicationModel.Event] {
        var events: [ReplicationModel.Event] = []
        var node = node
        while node >= 0 {
            events.append(nodes[node].event)
            node = nodes[node].parent
        }
        return events.reversed()
    }

    /// Takes random steps, until something is broken.
    static func walk(
        seed: UInt64, steps: Int, _ alphabet: ReplicationAlphabet, _ rules: ReplicationRules = ReplicationRules()
    ) -> ReplicationResult {
        var generator = SeededGenerator(seed: seed)
        var result = ReplicationResult()
        var state = ReplicationState(
            ReplicationModel(instances: alphabet.instances, sessions: alphabet.sessions, rules))
        while result.depth < steps, result.violation == nil {
            let events = state.events(alphabet)
            guard let event = events.randomElement(using: &generator) else { break }
            state.apply(event)
            result.depth += 1
            result.history.append(event)
            result.violation = state.model.violation(.all)
        }
        return result
    }
}
