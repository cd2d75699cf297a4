/// The rules that protect sessions when the master changes. A test takes one of them away, to see that it is missed.
struct ReplicationRules: Sendable {
    /// What was acknowledged is written again to a new master.
    var repeatsWrites = true
    /// A rotation replaces the generation that was read, and no other.
    var comparesGenerations = true
    /// A rotation replaces the token that was read, and no other of its generation.
    var comparesTokens = true
    /// The end of a session that is not found is repeated, and marked where the master is new to the instance.
    var endsAbsent = true
    /// Of what one instance repeats, ends are written after all writes.
    var writesEndsLast = true
    /// An instance does not repeat writes of a session whose end it has seen.
    var forgetsEnded = true
    /// How long the end of a session is marked, as in `RedisSessionScripts`; 0 for never.
    var markLifetime = 35_000

    static let accessTTL = 100_000
    static let cacheTTL = 5_000
    static let grace = 30_000
}

/// The sessions of one server. Sessions and pairs of tokens are numbers; a pair is an access token and a refresh token.
///
/// The operations are those of `RedisSessionScripts`, without what no failover changes: idle timeouts, limits, lists.
struct ReplicatedStore {
    struct Session {
        struct Grace {
            let used: Int
            let next: Int
            let end: Int
        }

        var generation = 0
        /// The pair whose refresh token is the session's.
        var current: Int
        var access: [(pair: Int, expiry: Int)]
        var graces: [Grace] = []
        /// The pairs that were exchanged in the history that this server has. No script reads it.
        var used: [Int] = []
    }

    /// What one script changed, as a replica gets it.
    struct Effect {
        let number: Int
        let session: Session?
        let mark: Int
        let hasEnded: Bool
    }

    /// The arguments of a rotation.
    struct Rotation {
        let generation: Int
        let used: Int
        let next: Int
        let accessExpiry: Int
        let graceEnd: Int
    }

    enum Presented {
        case unknown
        case current(generation: Int)
        /// A used token in its grace period: the pair that it got.
        case again(Int)
        case reused
    }

    private(set) var sessions: [Session?]
    /// When the marks of ends expire.
    private var marks: [Int]
    /// Sessions whose end is part of the history that this server has. No script reads it.
    private(set) var ended: [Bool]

    init(sessions count: Int) {
        sessions = Array(repeating: nil, count: count)
        marks = Array(repeating: 0, count: count)
        ended = Array(repeating: false, count: count)
    }

    mutating func insert(_ number: Int, pair: Int, expiry: Int) {
        sessions[number] = Session(current: pair, access: [(pair, expiry)])
    }

    /// Writes a session that a new master does not have.
    mutating func insertAgain(_ number: Int, pair: Int, expiry: Int, at now: Int) {
        guard sessions[number] == nil, marks[number] <= now else { return }
        insert(number, pair: pair, expiry: expiry)
    }

    /// What a genuine refresh token gets.
    func read(_ pair: Int, of number: Int, at now: Int) -> Presented {
        guard let session = sessions[number] else { return .unknown }
        if session.current == pair { return .current(generation: session.generation) }
        if let grace = session.graces.last(where: { $0.used == pair }), now < grace.end { return .again(grace.next) }
        return .reused
    }

    func accepts(access pair: Int, of number: Int, at now: Int) -> Bool {
        sessions[number]?.access.contains { $0.pair == pair && now < $0.expiry } ?? false
    }

    /// - Returns: whether the generation was still that of the rotation; `nil` if there is no such session.
    mutating func rotate(_ number: Int, _ rotation: Rotation, _ rules: ReplicationRules) -> Bool? {
        guard var session = sessions[number] else { return nil }
        if rules.comparesGenerations, session.generation != rotation.generation { return false }
        if rules.comparesTokens, session.current != rotation.used { return false }
        session.generation = rotation.generation + 1
        session.current = rotation.next
        session.access.append((rotation.next, rotation.accessExpiry))
        session.graces.append(.init(used: rotation.used, next: rotation.next, end: rotation.graceEnd))
        session.used.append(rotation.used)
        sessions[number] = session
        return true
    }

    /// - Parameter marksAbsent: whether a session that does not exist is marked, too, as when an end is repeated.
    mutating func end(_ number: Int, marksAbsent: Bool, at now: Int, _ rules: ReplicationRules) -> Bool {
        let exists = sessions[number] != nil
        guard exists || marksAbsent else { return false }
        sessions[number] = nil
        marks[number] = rules.markLifetime > 0 ? now + rules.markLifetime : 0
        ended[number] = true
        return exists
    }

    func effect(on number: Int) -> Effect {
        Effect(number: number, session: sessions[number], mark: marks[number], hasEnded: ended[number])
    }

    mutating func apply(_ effect: Effect) {
        sessions[effect.number] = effect.session
        marks[effect.number] = effect.mark
        ended[effect.number] = effect.hasEnded
    }

    func hash(into digest: inout StateDigest) {
        for number in sessions.indices { effect(on: number).hash(into: &digest) }
    }
}

extension ReplicatedStore.Effect {
    func hash(into digest: inout StateDigest) {
        digest.add(number)
        digest.add(mark)
        digest.add(hasEnded ? 1 : 0)
        guard let session else { return digest.add(-1) }
        digest.add(session.generation)
        digest.add(session.current)
        for (pair, expiry) in session.access {
            digest.add(pair)
            digest.add(expiry)
        }
        for grace in session.graces {
            digest.add(grace.used)
            digest.add(grace.next)
            digest.add(grace.end)
        }
        digest.add(session.used)
    }
}

/// Identifies a state that was visited: 64 bits of all its parts.
struct StateDigest {
    private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ number: Int) {
        value = (value ^ UInt64(bitPattern: Int64(number))) &* 0x9E37_79B9_7F4A_7C15
        value ^= value >> 29
    }

    mutating func add(_ numbers: [Int]) {
        add(numbers.count)
        for number in numbers { add(number) }
    }
}
