internal import MartletCore
package import MartletSession
internal import MartletTesting

/// A random run of logins, uses, refreshes with tokens old and new, logouts and jumps of the clock, by several
/// instances; the results of the store are compared with the model at every step.
package struct SessionHistory {
    private typealias Tokens = (access: Secret, refresh: Secret)

    private var generator: SeededGenerator
    private let seed: UInt64
    private let clock: Box<Int64>
    private let instances: [SessionBench]
    private var model: SessionModel
    /// The store's name of each of the model's sessions.
    private var references: [SessionReference] = []
    /// The access and refresh tokens of each session, by the model's numbers.
    private var access: [[(number: Int, token: Secret)]] = []
    private var refresh: [[(number: Int, token: Secret)]] = []
    private var trace: [String] = []
    /// How often each result occurred, to see that a run reaches what it is there for.
    package private(set) var results: [String: Int] = [:]

    private var now: Int64 { clock.value }

    /// - Parameters:
    ///   - start: of the clock, in milliseconds; a real Redis must not be ahead of it.
    ///   - instances: makes the backends that share sessions.
    package init(seed: UInt64, startingAt start: Int64, on backends: [any SessionBackend]) {
        var generator = SeededGenerator(seed: seed)
        var policy = SessionPolicy.sample
        policy.accessTTL = .seconds([20, 300, 900].randomElement(using: &generator) ?? 20)
        policy.refreshTTL = .seconds([1_000, 20_000].randomElement(using: &generator) ?? 1_000)
        policy.idleTimeout = .seconds([200, 3_000].randomElement(using: &generator) ?? 200)
        policy.refreshReuseGrace = .seconds([0, 10, 30].randomElement(using: &generator) ?? 0)
        policy.maximumPerSubject = Int.random(in: 1...4, using: &generator)
        let clock = Box(start)
        self.seed = seed
        self.clock = clock
        self.generator = generator
        model = SessionModel(policy)
        instances = backends.map { backend in SessionBench(backend: backend, clock: clock) { $0 = policy } }
    }

    /// Takes so many steps.
    /// - Throws: `TestFailure` with the seed and the steps, at the first result that is not the model's.
    package mutating func run(steps: Int) async throws {
        for _ in 0..<steps {
            let before = instances.map { $0.revoked.value.count }
            let ended = try await step(instances[Int.random(in: instances.indices, using: &generator)])
            let revoked = zip(instances, before).flatMap { Array($0.revoked.value[$1...]) }
            let expected = ended.compactMap { UInt64(references[$0].id.dropFirst(4).prefix(16), radix: 16) }
            try check(revoked.sorted() == expected.sorted(), "revoked \(revoked) and not \(expected)")
        }
    }

    /// - Returns: the sessions that have ended by it.
    private mutating func step(_ instance: SessionBench) async throws -> [Int] {
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<15: return try await login(instance)
        case 15..<40: return try await verify(instance)
        case 40..<70: return try await refresh(instance)
        case 70..<74: return try await logout(instance)
        case 74..<78: return try await logoutAll(instance)
        case 78..<84: return try await list(instance)
        default:
            let jump = [10, 500, 2_000, 9_999, 10_000, 10_001, 31_000, 150_000, 400_000].randomElement(
                using: &generator)
            clock.withLock { $0 += Int64(jump ?? 0) }
            trace.append("+\(jump ?? 0) ms")
            return []
        }
    }

    private mutating func login(_ instance: SessionBench) async throws -> [Int] {
        let (subject, provider) = (subject(), provider())
        trace.append("login \(subject) by \(provider)")
        let tokens = try await instance.login(subject, provider: provider)
        let (pair, ended) = model.login(subject, provider, at: now)
        references.append(tokens.session)
        access.append([])
        refresh.append([])
        try check(tokens.provider == provider && tokens.session.subject == subject, "another session")
        try adopt(tokens, as: pair, of: references.count - 1)
        return ended
    }

    private mutating func verify(_ instance: SessionBench) async throws -> [Int] {
        guard let index = session(), let (number, token) = newestMostly(access[index]) else { return [] }
        trace.append("verify \(number) of \(index)")
        let expected = model.verify(number, of: index, at: now)
        let result = await instance.rejection(of: token)
        note("verify", result)
        // An expired token may look like one that was evicted, or not.
        let codes: Set<ErrorCode?> = [.sessionTokenExpired, .sessionTokenUnknown]
        try check(
            result == expected || codes.isSuperset(of: [result, expected]),
            "answered \(result.map(String.init(describing:)) ?? "yes"), expected \(expected.map(String.init(describing:)) ?? "yes")"
        )
        return []
    }

    private mutating func refresh(_ instance: SessionBench) async throws -> [Int] {
        guard let index = session(), let (number, token) = newestMostly(refresh[index]) else { return [] }
        trace.append("refresh \(number) of \(index)")
        let expected = model.refresh(number, of: index, at: now)
        do {
            let tokens = try await instance.store.refresh(token)
            note("refresh", nil)
            guard case .pair(let pair) = expected else { throw failure("gave a pair, expected \(expected)") }
            try check(tokens.session == references[index], "another session")
            try adopt(tokens, as: pair, of: index)
            return []
        } catch let error as SessionError {
            note("refresh", error.code)
            try check(expected == .refused(error.code), "answered \(error), expected \(expected)")
            return error.code == .sessionTokenReused ? [index] : []
        }
    }

    private mutating func logout(_ instance: SessionBench) async throws -> [Int] {
        guard let index = session() else { return [] }
        let subject = Int.random(in: 0..<4, using: &generator) == 0 ? subject() : references[index].subject
        trace.append("logout \(index) as \(subject)")
        let ended = model.end(subject, at: now) { $0 == index }
        let result = try await instance.store.end(SessionReference(subject: subject, id: references[index].id))
        try check(result == !ended.isEmpty, "answered \(result)")
        return ended
    }

    private mutating func logoutAll(_ instance: SessionBench) async throws -> [Int] {
        let subject = subject()
        let provider = Bool.random(using: &generator) ? provider() : nil
        let kept = Bool.random(using: &generator) ? session() : nil
        trace.append("logout all of \(subject), provider \(provider ?? "any"), but \(kept.map(String.init) ?? "none")")
        let sessions = model.sessions
        let ended = model.end(subject, at: now) {
            $0 != kept && (provider == nil || sessions[$0].provider == provider)
        }
        try await instance.store.endAll(subject: subject, provider: provider, except: kept.map { references[$0] })
        return ended
    }

    private mutating func list(_ instance: SessionBench) async throws -> [Int] {
        let subject = subject()
        trace.append("list \(subject)")
        let listed = try await instance.store.list(subject: subject)
        let expected = model.live(subject, at: now).reversed().map { index in
            let session = model.sessions[index]
            return SessionSummary(
                id: references[index].id, provider: session.provider,
                createdAt: UnixTime(seconds: session.created / 1000),
                lastSeenAt: UnixTime(seconds: session.lastSeen / 1000),
                expiresAt: UnixTime(seconds: (session.ends + 999) / 1000))
        }
        try check(listed == expected, "listed \(listed) and not \(expected)")
        return []
    }

    /// The tokens are the ones that the pair stands for, or stand for it from now on.
    private mutating func adopt(_ tokens: IssuedTokens, as pair: SessionModel.Pair, of index: Int) throws {
        try adopt(tokens.accessToken, as: pair.access, in: &access[index])
        try adopt(tokens.refreshToken, as: pair.refresh, in: &refresh[index])
        let left = Duration.milliseconds(max(pair.accessExpiry - now, 0))
        try check(tokens.accessLifetime == left, "the access token lives \(tokens.accessLifetime) and not \(left)")
        let whole = Duration.milliseconds(model.sessions[index].ends - now)
        try check(tokens.refreshLifetime == whole, "the session lives \(tokens.refreshLifetime) and not \(whole)")
    }

    private func adopt(_ token: Secret, as number: Int, in known: inout [(number: Int, token: Secret)]) throws {
        if let held = known.first(where: { $0.number == number }) {
            try check(held.token.copy == token.copy, "not the same token again")
        } else {
            try check(!known.contains { $0.token.copy == token.copy }, "a token that was there before")
            known.append((number, token))
        }
    }

    private mutating func subject() -> String { ["usr_ann", "usr_bob"].randomElement(using: &generator) ?? "" }
    private mutating func provider() -> String { ["apple", "wechat"].randomElement(using: &generator) ?? "" }

    /// One of the latest sessions.
    private mutating func session() -> Int? {
        references.isEmpty ? nil : Int.random(in: max(references.count - 6, 0)..<references.count, using: &generator)
    }

    private mutating func newestMostly<Token>(_ tokens: [Token]) -> Token? {
        Int.random(in: 0..<3, using: &generator) > 0 ? tokens.last : tokens.randomElement(using: &generator)
    }

    private mutating func note(_ what: String, _ code: ErrorCode?) {
        results["\(what) \(code?.rawValue ?? "yes")", default: 0] += 1
    }

    private func check(_ holds: Bool, _ text: @autoclosure () -> String) throws {
        if !holds { throw failure(text()) }
    }

    private func failure(_ text: String) -> TestFailure {
        TestFailure("seed \(seed), policy \(model.policy), after \(trace.suffix(25)): \(text)")
    }
}
