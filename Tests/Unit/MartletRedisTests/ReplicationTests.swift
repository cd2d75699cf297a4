import Foundation
import Testing

@testable import MartletRedis

/// Sessions over asynchronous replication: a search over what may happen between the master's loss and the next one.
///
/// `MARTLET_MODEL_STATES=400000` visits most of what the alphabets allow, `MARTLET_MODEL_BATCHES` adds random histories.
@Suite struct ReplicationTests {
    /// The protections that a search is made without, or the conditions that a promise is made without, and what it finds.
    struct Missing: CustomTestStringConvertible {
        let what: String
        let alphabet: ReplicationAlphabet
        var rules = ReplicationRules()
        var conditions = ReplicationConditions.all
        let violation: ReplicationViolation
        /// The shortest history.
        let history: String

        var testDescription: String { what }
    }

    private static let limit = number("MARTLET_MODEL_STATES") ?? 20_000
    private static let batches = number("MARTLET_MODEL_BATCHES") ?? 2

    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    @Test(arguments: ReplicationAlphabet.all)
    func `no history of a failover breaks a promise`(alphabet: ReplicationAlphabet) {
        let result = ReplicationSearch.run(alphabet, limit: Self.limit)
        #expect(result.violation == nil, "\(result.text)")
        #expect(result.states > 10_000 && result.depth > 6, "\(result.states) \(result.depth)")
    }

    @Test(arguments: 0..<batches)
    func `random histories of several failovers break no promise`(batch: Int) {
        var reigns: Set<Int> = []
        for number in 0..<200 {
            let seed = UInt64(batch * 1000 + number)
            let result = ReplicationSearch.walk(seed: seed, steps: 150, .everything)
            #expect(result.violation == nil, "seed \(seed): \(result.text)")
            reigns.insert(result.history.count { $0 == .promote })
        }
        #expect(reigns.contains(4), "\(reigns)")
    }

    @Test(arguments: Missing.protections)
    func `a missing protection is found`(missing: Missing) { expect(missing) }

    @Test(arguments: Missing.logins)
    func `a login is lost only where a condition is missing`(missing: Missing) { expect(missing) }

    @Test(arguments: Missing.ends)
    func `an ended session is accepted only where a condition is missing`(missing: Missing) { expect(missing) }

    @Test(arguments: Missing.refreshes)
    func `an acknowledged refresh may be lost`(missing: Missing) {
        expect(missing)
    }

    private func expect(_ missing: Missing) {
        let result = ReplicationSearch.run(missing.alphabet, missing.rules, missing.conditions, limit: Self.limit)
        #expect(result.violation == missing.violation)
        #expect(result.text == missing.history)
    }

    @Test func `ends are repeated last for sessions that are not marked`() {
        var alphabet = ReplicationAlphabet.ends
        (alphabet.instances, alphabet.goesOn, alphabet.replicates) = (1, false, false)
        var rules = ReplicationRules()
        (rules.markLifetime, rules.forgetsEnded) = (0, false)
        let last = ReplicationSearch.run(alphabet, rules)
        #expect(last.violation == nil && last.isComplete, "\(last.text)")
        rules.writesEndsLast = false
        let first = ReplicationSearch.run(alphabet, rules)
        #expect(first.violation == .endUndone && first.history.count == 7, "\(first.text)")
        // With marks it is a second protection, as is forgetting.
        #expect(ReplicationSearch.run(alphabet, ReplicationRules(writesEndsLast: false)).violation == nil)
        #expect(ReplicationSearch.run(alphabet, ReplicationRules(forgetsEnded: false)).violation == nil)
    }

    @Test func `ends are marked for longer than writes are repeated`() {
        #expect(RecentWrites.writeLifetime + .seconds(1) < .milliseconds(ReplicationRules().markLifetime))
    }

    @Test func `what got 503 is not acknowledged, and may be repeated`() {
        var model = ReplicationModel(instances: 2, sessions: 1, ReplicationRules())
        let events: [ReplicationModel.Event] = [
            .login(at: 0), .loseReply, .refresh(at: 0, pair: 0), .find(at: 0), .refresh(at: 1, pair: 0),
        ]
        for event in events { model.apply(event) }
        #expect(model.writes.count == 1 && model.pairs.map(\.isAcknowledged) == [true, true])
        for event in [.loseReply, .revoke(at: 1, session: 0)] as [ReplicationModel.Event] { model.apply(event) }
        #expect(model.writes.count == 1 && model.sessions[0].ends.isEmpty && model.sessions[0].hasEnded)
    }

    @Test func `a refresh token that is used on both sides of a failover ends its session`() {
        var model = ReplicationModel(instances: 2, sessions: 1, ReplicationRules())
        let events: [ReplicationModel.Event] = [
            .login(at: 0), .replicate, .refresh(at: 0, pair: 0), .die(at: 0), .crash, .promote, .find(at: 1),
            .refresh(at: 1, pair: 0),
        ]
        for event in events { model.apply(event) }
        #expect(model.servers[1].sessions[0]?.current == 2)
        // The token of the lost master is genuine, and of no generation that this one has.
        model.apply(.refresh(at: 1, pair: 1))
        #expect(model.servers[1].sessions[0] == nil && model.sessions[0].ends.count == 1)
        model.apply(.refresh(at: 1, pair: 2))
        #expect(model.pairs.count == 3 && model.violation(.all) == nil)
    }
}

extension ReplicationAlphabet: CustomTestStringConvertible {
    fileprivate static func with(_ name: String, _ change: (inout Self) -> Void) -> Self {
        var alphabet = Self()
        alphabet.testDescription = name
        change(&alphabet)
        return alphabet
    }

    /// One client that refreshes and revokes, and an instance that may die.
    fileprivate static let ends = with("ends") {
        ($0.steps, $0.deaths, $0.waits, $0.maximumWaits) = (3, 1, [40_000], 1)
    }
    /// Two sessions and two failovers.
    fileprivate static let logins = with("logins") {
        ($0.steps, $0.sessions, $0.failovers, $0.deaths, $0.waits) = (2, 2, 2, 1, [1_000, 31_000])
        ($0.refreshes, $0.revokes) = (false, false)
    }
    /// Every refresh token that was given out is presented.
    fileprivate static let chains = with("chains") {
        ($0.steps, $0.revokes, $0.presentsUsed, $0.maximumWaits) = (5, false, true, 0)
    }
    /// The same, while an old master responds, and between the two scripts of a refresh.
    fileprivate static let oldMaster = with("old master") {
        ($0.steps, $0.revokes, $0.presentsUsed, $0.maximumWaits) = (4, false, true, 0)
        ($0.dividesRefreshes, $0.partitions) = (true, true)
    }
    /// Copies of loops, from the old master and from the new one.
    fileprivate static let copies = with("copies") {
        ($0.steps, $0.partitions, $0.copies, $0.refreshes) = (4, true, true, false)
        ($0.waits, $0.maximumWaits) = ([6_000], 1)
    }
    /// Two failovers, one soon after the other.
    fileprivate static let twice = with("two failovers") {
        ($0.steps, $0.failovers, $0.refreshes, $0.waits) = (2, 2, false, [1_500, 40_000])
    }
    /// Replies and connections that are lost.
    fileprivate static let lostReplies = with("lost replies") {
        ($0.steps, $0.lostReplies, $0.disconnects, $0.maximumWaits) = (3, 1, 1, 0)
    }
    fileprivate static let all = [ends, logins, chains, oldMaster, copies, twice, lostReplies]

    /// One login, or one revocation, and a wait.
    fileprivate static func single(_ steps: Int, failovers: Int = 1, waits: [Int] = []) -> Self {
        with("single") {
            ($0.steps, $0.refreshes, $0.failovers, $0.deaths, $0.waits) = (steps, false, failovers, 1, waits)
        }
    }

    /// Two failovers, with time between them.
    fileprivate static let againLater = with("again, later") {
        ($0.steps, $0.failovers, $0.refreshes, $0.revokes, $0.instances) = (1, 2, false, false, 1)
        ($0.waits, $0.maximumWaits, $0.waitsAtFirst) = ([3_000], 1, false)
    }

    fileprivate static let everything = with("everything") {
        ($0.steps, $0.sessions, $0.failovers, $0.deaths, $0.disconnects, $0.lostReplies) = (40, 3, 4, 1, 4, 4)
        ($0.waits, $0.maximumWaits) = ([1_000, 2_000, 6_000, 29_000, 40_000], 25)
        ($0.presentsUsed, $0.dividesRefreshes, $0.copies, $0.partitions) = (true, true, true, true)
    }
}

extension ReplicationConditions {
    /// All but one, for ended sessions only.
    fileprivate static func ends(without condition: Self) -> Self { all.subtracting(condition).union(.losesLogins) }
}

extension ReplicationTests.Missing {
    fileprivate static let protections: [Self] = [
        .init(
            what: "writes are not repeated", alphabet: .ends, rules: ReplicationRules(repeatsWrites: false),
            violation: .loginLost,
            history: "A logs in, crash, promote, A finds"),
        .init(
            what: "ends are not repeated", alphabet: .ends, rules: ReplicationRules(repeatsWrites: false),
            conditions: .all.union(.losesLogins), violation: .refreshAfterEnd,
            history: "A logs in, A revokes, replicate, crash, promote, A finds"),
        .init(
            what: "ends are not marked", alphabet: .ends, rules: ReplicationRules(markLifetime: 0),
            violation: .endUndone,
            history: "A logs in, crash, promote, A finds, A revokes, A repeats 0"),
        .init(
            what: "ends are marked for 20 s", alphabet: .single(2, waits: [25_000]),
            rules: ReplicationRules(markLifetime: 20_000), violation: .endUndone,
            history: "A logs in, crash, promote, A finds, B finds, B revokes, 25000 ms, A repeats 0"),
        .init(
            what: "generations are not compared", alphabet: .chains,
            rules: ReplicationRules(comparesGenerations: false, comparesTokens: false), violation: .exchangedTwice,
            history: "A logs in, B refreshes 0, replicate, replicate, crash, promote, B finds, B refreshes 1, "
                + "B repeats 0, B refreshes 1"),
        .init(
            what: "generations are not compared, at one master", alphabet: .oldMaster,
            rules: ReplicationRules(comparesGenerations: false, comparesTokens: false), violation: .exchangedTwice,
            history: "A logs in, A reads 0, B refreshes 0, A rotates"),
        .init(
            what: "the end of a session that is not there is forgotten", alphabet: .lostReplies,
            rules: ReplicationRules(endsAbsent: false), conditions: .all.union(.losesLogins),
            violation: .refreshAfterEnd,
            history: "A logs in, crash, promote, A finds, A revokes, A repeats 0"),
        .init(
            what: "tokens are not compared", alphabet: .chains, rules: ReplicationRules(comparesTokens: false),
            conditions: .all.subtracting(.isOneBranch), violation: .twoChains,
            history: "A logs in, A refreshes 0, B refreshes 1, replicate, crash, promote, B finds, B refreshes 0, "
                + "B repeats 0, B refreshes 2"),
    ]

    fileprivate static let logins: [Self] = [
        .init(
            what: "the instance dies", alphabet: .single(1), conditions: .all.subtracting(.instanceLives),
            violation: .loginLost,
            history: "A logs in, A dies, crash, promote"),
        .init(
            what: "the login is older than 2 s", alphabet: .single(1, waits: [3_000]),
            conditions: .all.subtracting(.isRecent), violation: .loginLost,
            history: "A logs in, 3000 ms, crash, promote, A finds"),
        .init(
            what: "the login is repeated, and lost again", alphabet: .againLater,
            conditions: .all.subtracting(.isRecent), violation: .loginLost,
            history: "A logs in, crash, promote, A finds, rejoin, A repeats 0, 3000 ms, crash, promote, A finds"),
        .init(
            what: "the master is found after 30 s", alphabet: .single(1, waits: [31_000]),
            conditions: .all.subtracting(.foundInTime), violation: .loginLost,
            history: "A logs in, crash, promote, A finds, 31000 ms"),
    ]

    fileprivate static let ends: [Self] = [
        .init(
            what: "the instance dies", alphabet: .ends, conditions: .ends(without: .instanceLives),
            violation: .refreshAfterEnd,
            history: "A logs in, A revokes, A dies, replicate, crash, promote, B finds"),
        .init(
            what: "the instance has not found the master", alphabet: .ends,
            conditions: .ends(without: .hasRepeated), violation: .refreshAfterEnd,
            history: "A logs in, A revokes, replicate, crash, promote, A finds"),
        .init(
            what: "another instance uses the old master", alphabet: .copies,
            conditions: .ends(without: .hasFoundMaster), violation: .refreshAfterEnd,
            history: "A logs in, promote, A finds, A revokes"),
        .init(
            what: "the master is found after 60 s", alphabet: .single(2, waits: [61_000]),
            conditions: .ends(without: .foundInTime), violation: .refreshAfterEnd,
            history: "A logs in, A revokes, replicate, crash, promote, A finds, 61000 ms"),
    ]

    fileprivate static let refreshes: [Self] = [
        .init(
            what: "another instance uses the old master", alphabet: .oldMaster,
            conditions: .all.subtracting(.hasFoundMaster).union(.losesEnds), violation: .twoChains,
            history: "A logs in, replicate, promote, A refreshes 0, A finds, A refreshes 0"),
        .init(
            what: "a refresh is repeated before another instance repeats the one before it", alphabet: .chains,
            conditions: .all.subtracting(.losesRefreshes), violation: .refreshLost,
            history: "A logs in, A refreshes 0, B refreshes 1, replicate, crash, promote, B finds, B repeats 0"),
    ]
}
