import MartletCore

@testable import MartletRedis

/// A write that an instance has acknowledged.
struct AcknowledgedWrite {
    enum Kind {
        case insert(pair: Int, expiry: Int)
        case rotation(ReplicatedStore.Rotation)
        case end
    }

    let session: Int
    let kind: Kind
}

/// One gateway. What it repeats, and when, is decided by the product's own values.
struct ReplicatedInstance {
    /// A refresh between its two scripts.
    struct Refresh {
        let session: Int
        let pair: Int
        let generation: Int
    }

    /// All that is written is of one subject, whose keys have one hash tag.
    private static let key = Array("{subject}".utf8)

    var isAlive = true
    /// The server that it is connected to.
    private(set) var server: Int?
    private var recent = RecentWrites()
    private var changes = MasterChanges()
    private var queue = ReplayQueue()
    /// The numbers of writes that are being repeated.
    private(set) var inFlight: [Int] = []
    /// The last reign, the time between two promotions, in which it has found the master.
    private(set) var reign = 0
    /// The last reign in which all has been repeated.
    private(set) var repeatedReign = 0
    /// When it found the master of that reign, and when it had lost the one before.
    private(set) var foundAt = 0
    private(set) var lostAt = 0
    /// A loop's copies of sessions, by access token.
    private(set) var copies: [(pair: Int, session: Int, expiry: Int)] = []
    /// Published ends that have not arrived.
    var messages: [Int] = []
    var refresh: Refresh?
    /// What the values above contain, to distinguish states.
    private var content: [Int] = []

    init(server: Int) { self.server = server }

    /// Records an acknowledged write.
    mutating func record(_ number: Int, _ write: AcknowledgedWrite, at now: Int, _ rules: ReplicationRules) {
        var kind = RedisReplay.Kind.write
        if case .end = write.kind { kind = .end }
        let command = RedisCommand([Array(String(number).utf8)], key: Self.key)
        recent.add(
            RedisReplay(kind, command, number: rules.forgetsEnded ? UInt64(write.session) : nil), at: time(now))
        content += [number, now]
    }

    /// A session has ended, here or at another instance.
    mutating func drop(_ session: Int, _ rules: ReplicationRules) {
        copies.removeAll { $0.session == session }
        guard rules.forgetsEnded else { return }
        recent.forget([UInt64(session)])
        content += [-1, session]
    }

    mutating func copy(_ pair: Int, of session: Int, until expiry: Int) {
        copies.removeAll { $0.pair == pair }
        copies.append((pair, session, expiry))
    }

    /// Its connection has ended.
    mutating func disconnect(at now: Int) {
        server = nil
        changes.lost(at: time(now))
        refresh = nil
        content += [-2, now]
        stopRepeating()
    }

    private mutating func stopRepeating() {
        guard !queue.isEmpty else { return }
        queue.removeAll()
        for _ in inFlight { queue.finished(HashSlot(of: Self.key)) }
        inFlight = []
        changes.failed()
    }

    /// It has found the master.
    mutating func connect(to master: Int, reign: Int, at now: Int, _ rules: ReplicationRules) {
        stopRepeating()
        let lost = changes.lostAt ?? time(now)
        (server, self.reign, foundAt, lostAt) = (master, reign, now, Int(lost.nanoseconds / 1_000_000))
        changes.moved(nil)
        let due = recent.commands(at: time(now), lostAt: lost) { _ in true }
        changes.written(at: time(now)) { _ in true }
        if rules.repeatsWrites {
            queue.add(
                writes: rules.writesEndsLast ? due.writes : due.ends,
                ends: rules.writesEndsLast ? due.ends : due.writes)
        }
        next()
    }

    /// What is in flight has failed; writes are repeated from the beginning.
    mutating func failPending(at now: Int, _ rules: ReplicationRules) {
        refresh = nil
        if isAlive, let server, !inFlight.isEmpty { connect(to: server, reign: reign, at: now, rules) }
    }

    /// One of the writes in flight has been executed.
    mutating func executed(_ index: Int) {
        inFlight.remove(at: index)
        queue.finished(HashSlot(of: Self.key))
        next()
    }

    private mutating func next() {
        inFlight += queue.next().compactMap { Int(String(decoding: $0.arguments[0], as: UTF8.self)) }
        if queue.isEmpty { repeatedReign = reign }
    }

    func hash(into digest: inout StateDigest) {
        digest.add(isAlive ? server ?? -1 : -2)
        guard isAlive else { return }
        digest.add([reign, repeatedReign, foundAt, lostAt])
        digest.add(content)
        digest.add(inFlight)
        digest.add(messages)
        for copy in copies { digest.add([copy.pair, copy.expiry]) }
        if let refresh { digest.add([refresh.session, refresh.pair, refresh.generation]) }
    }
}
