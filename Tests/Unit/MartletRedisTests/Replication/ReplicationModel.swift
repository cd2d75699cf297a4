/// A master and a replica, two instances and a client, in simulated time; what happens next is decided from outside.
struct ReplicationModel {
    enum Event: Equatable {
        case login(at: Int)
        case use(at: Int, pair: Int)
        /// A refresh: both of its scripts, or one after the other.
        case refresh(at: Int, pair: Int)
        case read(at: Int, pair: Int)
        case rotate(at: Int)
        case revoke(at: Int, session: Int)
        /// The next step of a client is executed, its reply is lost with the connection, and the client gets 503.
        case loseReply
        /// The replica gets the next write.
        case replicate
        case crash
        case promote
        /// The old master, or what is left of it, becomes a replica of the new one.
        case rejoin
        case find(at: Int)
        case repeatWrite(at: Int, index: Int)
        case message(at: Int)
        case disconnect(at: Int)
        case die(at: Int)
        case wait(Int)
    }

    /// What the server that is not the master is.
    enum Peer: Int {
        case replica
        /// An old master, still used by instances that have not found the new one.
        case oldMaster
        case down
    }

    struct Pair {
        let session: Int
        /// Whether a client has received it.
        var isAcknowledged = false
        /// The instance that repeats its rotation.
        var rotation: (instance: Int, at: Int)?
    }

    /// What an instance found that acknowledged an end.
    enum Found: Int {
        case session
        /// Nothing: a request that got 503 has ended the session.
        case nothingLeft
        /// Nothing yet: the login has not been repeated at this master.
        case nothingYet
    }

    /// An end that was acknowledged to a client.
    struct End {
        let at: Int
        let instance: Int
        /// The reign of the master that executed it; -1 of an old one.
        let reign: Int
        /// Without the session the instance has nothing to repeat.
        let found: Found
    }

    struct Session {
        var login: (instance: Int, at: Int)?
        var ends: [End] = []
        /// Whether an end was executed by any server, acknowledged or not.
        var hasEnded = false
        /// The last pair of the session that the master of a reign gave out.
        var tip: (reign: Int, pair: Int)?
        /// The last reign in which an old master has exchanged a token.
        var oldReign: Int?
        /// Whether an old master and the new one have both done so.
        var isAtBoth = false
        /// Whether a rotation met another token of the same generation than the one that it was made for.
        var isJoined = false
    }

    let rules: ReplicationRules
    let limit: Int
    private(set) var now = 0
    private(set) var servers: [ReplicatedStore]
    private(set) var master = 0
    private(set) var isMasterUp = true
    private(set) var peer = Peer.replica
    private(set) var reign = 0
    private(set) var stream: [ReplicatedStore.Effect] = []
    var instances: [ReplicatedInstance]
    var pairs: [Pair] = []
    var sessions: [Session] = []
    var writes: [AcknowledgedWrite] = []
    private(set) var losesReply = false
    /// What an event itself has broken.
    var broken: ReplicationViolation?

    /// - Parameter limit: the maximum number of sessions.
    init(instances count: Int, sessions limit: Int, _ rules: ReplicationRules) {
        self.rules = rules
        self.limit = limit
        servers = Array(repeating: ReplicatedStore(sessions: limit), count: 2)
        instances = Array(repeating: ReplicatedInstance(server: 0), count: count)
    }

    /// Whether an instance is connected to the master.
    func isAtMaster(_ index: Int) -> Bool { instances[index].server == master && isMasterUp }

    /// Whether an instance is connected to a server that responds.
    func isConnected(_ index: Int) -> Bool {
        guard instances[index].isAlive, let server = instances[index].server else { return false }
        return server == master ? isMasterUp : peer == .oldMaster
    }

    mutating func apply(_ event: Event) {
        switch event {
        case .login, .use, .refresh, .read, .rotate, .revoke:
            step(event)
            losesReply = false
        case .loseReply: losesReply = true
        case .replicate: servers[1 - master].apply(stream.removeFirst())
        case .crash:
            isMasterUp = false
            disconnect(from: master)
        case .promote:
            peer = isMasterUp ? .oldMaster : .down
            master = 1 - master
            isMasterUp = true
            reign += 1
            stream = []
        case .rejoin:
            disconnect(from: 1 - master)
            servers[1 - master] = servers[master]
            peer = .replica
        case .find(let index): instances[index].connect(to: master, reign: reign, at: now, rules)
        case .repeatWrite(let index, let position): repeatWrite(index, position)
        case .message(let index): instances[index].drop(instances[index].messages.removeFirst(), rules)
        case .disconnect(let index): instances[index].disconnect(at: now)
        case .die(let index):
            instances[index].isAlive = false
        case .wait(let time): wait(time)
        }
    }

    /// A second or more passes, which is longer than any command may take.
    private mutating func wait(_ time: Int) {
        now += time
        for index in instances.indices { instances[index].failPending(at: now, rules) }
    }

    private mutating func disconnect(from server: Int) {
        for index in instances.indices where instances[index].isAlive && instances[index].server == server {
            instances[index].disconnect(at: now)
        }
    }

    /// Executes a script at the server of an instance; the master's replica will get what it has changed.
    mutating func execute<Result>(
        _ index: Int, on number: Int, _ script: (inout ReplicatedStore) -> Result
    ) -> Result {
        let server = instances[index].server ?? master
        let result = script(&servers[server])
        if server == master, peer == .replica { stream.append(servers[server].effect(on: number)) }
        return result
    }

    private mutating func repeatWrite(_ index: Int, _ position: Int) {
        let number = instances[index].inFlight[position]
        let write = writes[number]
        let (now, rules, session) = (now, rules, write.session)
        switch write.kind {
        case .insert(let pair, let expiry):
            execute(index, on: session) { $0.insertAgain(session, pair: pair, expiry: expiry, at: now) }
        case .rotation(let rotation):
            let current = servers[master].sessions[session]?.current
            if execute(index, on: session, { $0.rotate(session, rotation, rules) }) == true {
                if current != rotation.used {
                    sessions[session].isJoined = true
                } else if sessions[session].tip?.reign == reign {
                    sessions[session].tip = (reign, rotation.next)
                }
            }
        case .end:
            _ = execute(index, on: session) { $0.end(session, marksAbsent: true, at: now, rules) }
            publish(session, from: index)
        }
        instances[index].executed(position)
    }

    /// Publishes an end to the instances that are connected to the same server.
    func isListening(_ index: Int, with other: Int) -> Bool {
        instances[index].isAlive && instances[index].server == instances[other].server
    }

    mutating func publish(_ session: Int, from index: Int) {
        for other in instances.indices where isListening(other, with: index) {
            if !instances[other].messages.contains(session) { instances[other].messages.append(session) }
        }
    }

    /// All that may matter later.
    var digest: StateDigest {
        var digest = StateDigest()
        digest.add([now, master, isMasterUp ? 1 : 0, peer.rawValue, reign, losesReply ? 1 : 0])
        for server in servers { server.hash(into: &digest) }
        digest.add(stream.count)
        for effect in stream { effect.hash(into: &digest) }
        for instance in instances { instance.hash(into: &digest) }
        for pair in pairs {
            digest.add([
                pair.isAcknowledged ? pair.session : -1, pair.rotation?.instance ?? -1, pair.rotation?.at ?? -1,
            ])
        }
        for session in sessions {
            digest.add([session.login?.at ?? -1, session.login?.instance ?? -1, session.hasEnded ? 1 : 0])
            digest.add([session.tip?.reign ?? -1, session.tip?.pair ?? -1, session.isJoined ? 1 : 0])
            digest.add([session.oldReign ?? -1, session.isAtBoth ? 1 : 0])
            for end in session.ends { digest.add([end.at, end.instance, end.reign, end.found.rawValue]) }
        }
        digest.add(writes.count)
        return digest
    }
}

// MARK: - The steps of a client

extension ReplicationModel {
    private mutating func step(_ event: Event) {
        switch event {
        case .login(let index): login(index)
        case .use(let index, let pair): use(index, pair)
        case .refresh(let index, let pair):
            read(index, pair)
            if instances[index].refresh != nil { rotate(index) }
        case .read(let index, let pair): read(index, pair)
        case .rotate(let index): rotate(index)
        case .revoke(let index, let session): revoke(index, session)
        default: break
        }
    }

    /// The reply to a write has arrived.
    /// - Returns: whether it has: otherwise the connection is lost, nothing is recorded, and the client gets 503.
    private mutating func acknowledge(_ index: Int, _ write: AcknowledgedWrite) -> Bool {
        guard !losesReply else {
            instances[index].disconnect(at: now)
            return false
        }
        writes.append(write)
        instances[index].record(writes.count - 1, write, at: now, rules)
        return true
    }

    private mutating func login(_ index: Int) {
        let (number, pair, expiry) = (sessions.count, pairs.count, now + ReplicationRules.accessTTL)
        sessions.append(Session())
        pairs.append(Pair(session: number))
        execute(index, on: number) { $0.insert(number, pair: pair, expiry: expiry) }
        let write = AcknowledgedWrite(session: number, kind: .insert(pair: pair, expiry: expiry))
        guard acknowledge(index, write) else { return }
        pairs[pair].isAcknowledged = true
        sessions[number].login = (index, now)
    }

    private mutating func use(_ index: Int, _ pair: Int) {
        let session = pairs[pair].session
        guard let server = instances[index].server, servers[server].accepts(access: pair, of: session, at: now)
        else { return }
        instances[index].copy(pair, of: session, until: now + ReplicationRules.cacheTTL)
    }

    private mutating func read(_ index: Int, _ pair: Int) {
        guard let server = instances[index].server else { return }
        let session = pairs[pair].session
        switch servers[server].read(pair, of: session, at: now) {
        case .current(let generation):
            instances[index].refresh = .init(session: session, pair: pair, generation: generation)
        case .again(let next): pairs[next].isAcknowledged = true
        case .reused: end(index, session)
        case .unknown: break
        }
    }

    private mutating func rotate(_ index: Int) {
        guard let refresh = instances[index].refresh, let server = instances[index].server else { return }
        instances[index].refresh = nil
        let rotation = ReplicatedStore.Rotation(
            generation: refresh.generation, used: refresh.pair, next: pairs.count,
            accessExpiry: now + ReplicationRules.accessTTL, graceEnd: now + ReplicationRules.grace)
        let (rules, number) = (rules, refresh.session)
        let before = servers[server].sessions[number]
        guard execute(index, on: number, { $0.rotate(number, rotation, rules) }) == true, let before else { return }
        pairs.append(Pair(session: number))
        check(rotation, of: number, before, isAtMaster: server == master)
        let write = AcknowledgedWrite(session: number, kind: .rotation(rotation))
        guard acknowledge(index, write) else { return }
        pairs[rotation.next].isAcknowledged = true
        pairs[rotation.next].rotation = (index, now)
    }

    /// What a token is exchanged for must continue the one chain of its session.
    private mutating func check(
        _ rotation: ReplicatedStore.Rotation, of number: Int, _ before: ReplicatedStore.Session, isAtMaster: Bool
    ) {
        if before.used.contains(rotation.used) { broken = .exchangedTwice }
        if before.current != rotation.used { sessions[number].isJoined = true }
        if !isAtMaster { sessions[number].oldReign = reign }
        defer {
            let (tip, old) = (sessions[number].tip?.reign, sessions[number].oldReign)
            if tip == reign, old == reign { sessions[number].isAtBoth = true }
        }
        guard isAtMaster else { return }
        if let tip = sessions[number].tip, tip.reign == reign, tip.pair != rotation.used {
            broken = broken ?? .twoChains
        }
        sessions[number].tip = (reign, rotation.next)
    }

    /// A client revokes the newest refresh token that it has.
    private mutating func revoke(_ index: Int, _ session: Int) {
        guard let server = instances[index].server else { return }
        guard servers[server].sessions[session] != nil else {
            // Success: there is no such token (RFC 7009).
            // What another instance has acknowledged is repeated by that one.
            guard !sessions[session].ends.contains(where: { $0.found == .session }) else { return }
            if rules.endsAbsent { return endAbsent(index, session) }
            return ended(session, by: index, sessions[session].hasEnded ? .nothingLeft : .nothingYet)
        }
        end(index, session)
    }

    private mutating func endAbsent(_ index: Int, _ session: Int) {
        let (now, rules) = (now, rules)
        if now - instances[index].foundAt < 60_000 {
            _ = execute(index, on: session) { $0.end(session, marksAbsent: true, at: now, rules) }
            publish(session, from: index)
            sessions[session].hasEnded = true
        }
        guard acknowledge(index, AcknowledgedWrite(session: session, kind: .end)) else { return }
        instances[index].drop(session, rules)
        ended(session, by: index, .session)
    }

    private mutating func end(_ index: Int, _ session: Int) {
        let (now, rules) = (now, rules)
        _ = execute(index, on: session) { $0.end(session, marksAbsent: false, at: now, rules) }
        publish(session, from: index)
        sessions[session].hasEnded = true
        guard acknowledge(index, AcknowledgedWrite(session: session, kind: .end)) else { return }
        instances[index].drop(session, rules)
        ended(session, by: index, .session)
    }

    private mutating func ended(_ session: Int, by index: Int, _ found: Found) {
        sessions[session].ends.append(
            End(at: now, instance: index, reign: isAtMaster(index) ? reign : -1, found: found))
    }
}
