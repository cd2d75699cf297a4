internal import MartletCore
internal import MartletProvider
package import MartletSession
internal import MartletTesting

/// A random run of logins, uses of cookies old and new, privilege changes, logouts and jumps of the clock, by several
/// instances; the results of the store are compared with the model at every step.
package struct CookieHistory {
    private struct Session {
        let reference: SessionReference
        /// In the order of the model's numbers.
        var tokens: [Secret]
        var model: CookieModel
    }

    private var generator: SeededGenerator
    private let seed: UInt64
    private let policy: SessionPolicy
    private let clock: Box<Int64>
    private let instances: [SessionBench]
    private var sessions: [Session] = []
    private var trace: [String] = []
    /// How often each result occurred, to see that a run reaches what it is there for.
    package private(set) var results: [String: Int] = [:]

    private var now: Int64 { clock.value }

    /// - Parameter start: of the clock, in milliseconds; a real Redis must not be ahead of it.
    package init(seed: UInt64, startingAt start: Int64, on backends: [any SessionBackend]) {
        var generator = SeededGenerator(seed: seed)
        var policy = SessionPolicy.sample
        policy.accessTTL = .seconds([20, 300, 900].randomElement(using: &generator) ?? 20)
        policy.refreshTTL = .seconds([1_000, 20_000].randomElement(using: &generator) ?? 1_000)
        policy.idleTimeout = .seconds([200, 3_000].randomElement(using: &generator) ?? 200)
        policy.refreshReuseGrace = .seconds([0, 10, 30].randomElement(using: &generator) ?? 0)
        policy.maximumPerSubject = 10_000
        let clock = Box(start)
        self.seed = seed
        self.policy = policy
        self.clock = clock
        self.generator = generator
        instances = backends.map { backend in SessionBench(backend: backend, clock: clock) { $0 = policy } }
    }

    /// Takes so many steps.
    /// - Throws: `TestFailure` with the seed and the steps, at the first result that is not the model's.
    package mutating func run(steps: Int) async throws {
        for _ in 0..<steps {
            let before = instances.map { ($0.revoked.value.count, $0.reused.value.count) }
            let live = sessions.indices.filter { !sessions[$0].model.isEnded }
            let isReported = try await step(instances[Int.random(in: instances.indices, using: &generator)])
            let ended = live.filter { sessions[$0].model.isEnded }.map { sessions[$0].reference }
            let revoked = zip(instances, before).flatMap { Array($0.revoked.value[$1.0...]) }
            let expected = ended.compactMap { UInt64($0.id.dropFirst(4).prefix(16), radix: 16) }
            try check(revoked == expected, "revoked \(revoked) and not \(expected)")
            let reused = zip(instances, before).flatMap { Array($0.reused.value[$1.1...]) }
            try check(reused == (isReported ? ended : []), "reported \(reused)")
        }
    }

    /// - Returns: whether a session that has ended is one whose cookie was reused.
    private mutating func step(_ instance: SessionBench) async throws -> Bool {
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<6: return try await login(instance)
        case 6..<58: return try await use(instance)
        case 58..<64: return try await inspect(instance)
        case 64..<72: return try await reissue(instance)
        case 72..<74: return try await end(instance)
        default:
            let jump =
                [10, 500, 2_000, 9_999, 10_000, 10_001, 20_000, 31_000, 150_000, 310_000].randomElement(
                    using: &generator) ?? 0
            clock.withLock { $0 += Int64(jump) }
            trace.append("+\(jump) ms")
            return false
        }
    }

    private mutating func login(_ instance: SessionBench) async throws -> Bool {
        trace.append("login")
        let cookie = try await instance.cookieLogin()
        try check(cookie.lifetime == policy.refreshTTL, "lives \(cookie.lifetime)")
        sessions.append(
            Session(
                reference: cookie.session, tokens: [cookie.token],
                model: CookieModel(policy, subject: cookie.session.subject, at: now)))
        return false
    }

    private mutating func use(_ instance: SessionBench) async throws -> Bool {
        guard let (index, number) = pick() else { return false }
        trace.append("use \(number) of \(index)")
        let expected = sessions[index].model.use(number, at: now)
        do {
            let session = try await instance.use(sessions[index].tokens[number])
            try compare(session, with: expected, of: index)
        } catch let error as AuthenticationError {
            try compare(error.code, with: expected, "use")
        }
        return sessions[index].model.isEnded
    }

    private mutating func inspect(_ instance: SessionBench) async throws -> Bool {
        guard let (index, number) = pick() else { return false }
        trace.append("inspect \(number) of \(index)")
        let expected = sessions[index].model.inspect(number, at: now)
        do {
            let session = try await instance.inspect(sessions[index].tokens[number])
            try compare(session, with: expected, of: index)
        } catch let error as AuthenticationError {
            try compare(error.code, with: expected, "inspect")
        }
        return false
    }

    private mutating func reissue(_ instance: SessionBench) async throws -> Bool {
        guard let (index, number) = pick() else { return false }
        trace.append("reissue \(number) of \(index)")
        let expected = sessions[index].model.reissue(number, at: now)
        do {
            let cookie = try await instance.reissue(sessions[index].tokens[number])
            guard case .accepted(let next?) = expected else { throw failure("issued, expected \(expected)") }
            try adopt(cookie.token, as: next, of: index)
            note("reissue yes")
        } catch let error as SessionError {
            try compare(error.code, with: expected, "reissue")
        }
        return sessions[index].model.isEnded
    }

    private mutating func end(_ instance: SessionBench) async throws -> Bool {
        guard let (index, number) = pick() else { return false }
        trace.append("end \(index) by \(number)")
        let isLive = sessions[index].model.isLive(at: now)
        if isLive { sessions[index].model.end() }
        do {
            try await instance.store.endSession(withCookie: sessions[index].tokens[number], reporting: nil)
            try check(isLive, "ended")
        } catch let error as SessionError {
            try check(!isLive && error.code == .sessionUnknown, "answered \(error)")
        }
        return false
    }

    private mutating func compare(
        _ session: VerifiedSession, with expected: CookieModel.Outcome, of index: Int
    ) throws {
        guard case .accepted(let next) = expected else { throw failure("accepted, expected \(expected)") }
        try check(session.principal.sessionID == sessions[index].reference.id, "another session")
        try check((session.replacement == nil) == (next == nil), "replacement or none, expected \(expected)")
        note(next == nil ? "use yes" : "use replaced")
        if let next, let replacement = session.replacement {
            try check(session.cacheLifetime == .zero, "cached for \(session.cacheLifetime)")
            try adopt(replacement.token, as: next, of: index)
        }
    }

    private mutating func compare(
        _ code: ErrorCode, with expected: CookieModel.Outcome, _ what: String
    ) throws {
        note("\(what) \(code)")
        try check(expected == .refused(code), "answered \(code), expected \(expected)")
    }

    /// The token is the one that the number stands for, or stands for it from now on.
    private mutating func adopt(_ token: Secret, as number: Int, of index: Int) throws {
        let known = sessions[index].tokens
        if number < known.count {
            try check(known[number].copy == token.copy, "not the same token again")
        } else {
            try check(number == known.count && !known.contains { $0.copy == token.copy }, "not a new token")
            sessions[index].tokens.append(token)
        }
    }

    /// A token of one of the latest sessions, mostly the newest.
    private mutating func pick() -> (index: Int, number: Int)? {
        guard !sessions.isEmpty else { return nil }
        let index = Int.random(in: max(sessions.count - 3, 0)..<sessions.count, using: &generator)
        let count = sessions[index].tokens.count
        let back = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3].randomElement(using: &generator) ?? 0
        return (index, max(count - 1 - back, 0))
    }

    private mutating func note(_ result: String) { results[result, default: 0] += 1 }

    private func check(_ holds: Bool, _ text: @autoclosure () -> String) throws {
        if !holds { throw failure(text()) }
    }

    private func failure(_ text: String) -> TestFailure {
        TestFailure("seed \(seed), policy \(policy), after \(trace.suffix(25)): \(text)")
    }
}
