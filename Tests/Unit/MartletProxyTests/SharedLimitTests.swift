import MartletAuthenticator
import MartletConfig
import MartletDecisionsTesting
import MartletHTTP
import MartletResponder
import MartletTesting
import MartletTraffic
import Synchronization
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Tokens that a test hands out.
private final class HandedTokens: SharedTokenStoring {
    private struct State {
        var left = 0
        var missing: Int64 = 0
        var isAway = false
        var asks: [TokenAsk] = []
        var held: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    init(_ left: Int, missing: Int64 = 0) {
        state.withLock { ($0.left, $0.missing) = (left, missing) }
    }

    var asks: [TokenAsk] { state.withLock { $0.asks } }
    var left: Int { state.withLock { $0.left } }

    func leave() { state.withLock { $0.isAway = true } }

    func ask(_ ask: TokenAsk, _ completion: @escaping @Sendable (TokenGrant?) -> Void) {
        let grant: TokenGrant? = state.withLock { state in
            state.asks.append(ask)
            guard !state.isAway else { return nil }
            state.left += ask.returned
            let granted = min(ask.waiting, state.left)
            state.left -= granted
            return TokenGrant(granted: granted, extra: 0, missing: granted < ask.waiting ? state.missing : 0)
        }
        completion(grant)
    }
}

/// Limits that count in the store.
@Suite struct SharedLimitTests {
    private static let get = "GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n"
    private static let hour: Int64 = 3_600_000_000_000
    private static let hourly = RequestRate(count: 1, perSeconds: 3600)

    private func bench(
        _ store: HandedTokens, _ configure: (inout SampleSettings) -> Void
    ) throws -> LoopBench {
        try LoopBench { settings in
            settings.store = StoreClient(store) { LoopBench.start }
            configure(&settings)
        }
    }

    /// Routes a request, and again once the store has decided.
    private func ask(_ bench: LoopBench, subject: Int? = nil) -> (passes: Bool, text: String) {
        let client = bench.openClient()
        let exchange = bench.begin(Self.get, on: client.downstream)
        var passes = bench.route(Self.get, exchange)
        if !passes, hasWaited(bench, exchange) { passes = bench.route(Self.get, exchange) }
        if passes, let subject {
            passes = admit(bench, exchange, subject)
            if !passes, hasWaited(bench, exchange) {
                passes = bench.route(Self.get, exchange) && admit(bench, exchange, subject)
            }
        }
        let text = client.end.text()
        if passes { bench.run { $0.finish(exchange) } }
        return (passes, text)
    }

    /// Ends the wait of a request, if it waits for the store.
    private func hasWaited(_ bench: LoopBench, _ exchange: Handle<Exchange>) -> Bool {
        bench.run { loop in
            guard let pending = loop.exchanges[exchange].suspension.limits else { return false }
            if case .none = loop.exchanges[exchange].resume(.decided(pending.wait), epoch: 0) { return false }
            return true
        }
    }

    private func admit(_ bench: LoopBench, _ exchange: Handle<Exchange>, _ subject: Int) -> Bool {
        bench.admitCaller(exchange, Self.get, subject: subject)
    }

    @Test func `a request waits for the store, at most for a moment, and goes on when it has decided`() throws {
        let store = HandedTokens(1, missing: 2 * Self.hour)
        let bench = try bench(store) { $0.limit("some", [.address], Self.hourly, burst: 2, sharedOr: .local) }
        let client = bench.openClient()
        let exchange = bench.begin(Self.get, on: client.downstream)
        #expect(!bench.route(Self.get, exchange) && bench.isAlive(exchange))
        #expect(bench.due(client.downstream) == 75)
        #expect(bench.run { $0.downstreams[client.downstream].phase } == .waiting)
        let messages = bench.mailbox.drain()
        guard case .limitsDecided(let decided, _) = messages.first else {
            Issue.record("the store has decided")
            return
        }
        #expect(messages.count == 1 && decided == exchange)
        #expect(hasWaited(bench, exchange) && bench.route(Self.get, exchange))
        let rejected = ask(bench)
        #expect(!rejected.passes && rejected.text.contains("429 Too Many Requests"))
        #expect(rejected.text.contains("RateLimit: \"some\";r=0;t=3600\r\n"), "\(rejected.text)")
        // From then on without the store.
        #expect(!ask(bench).passes && store.asks.count == 2)
    }

    @Test(
        arguments: [
            (.local, [true, true, false], "429 Too Many Requests"),
            (.allow, [true, true, true], ""),
            (.deny, [false, false, false], "503 Service Unavailable"),
        ] as [(RateLimitConfiguration.StoreErrorPolicy, [Bool], String)])
    func `while the store is unavailable, on_store_error decides`(
        _ policy: RateLimitConfiguration.StoreErrorPolicy, _ expected: [Bool], _ status: String
    ) throws {
        let store = HandedTokens(0)
        store.leave()
        let bench = try bench(store) { $0.limit("some", [.address], Self.hourly, burst: 2, sharedOr: policy) }
        let results = (0..<3).map { _ in ask(bench) }
        #expect(results.map(\.passes) == expected)
        #expect(status.isEmpty || results[2].text.contains(status), "\(results[2].text)")
        if policy == .deny {
            #expect(results[2].text.contains("Retry-After: 1\r\n"))
            #expect(bench.counted().reasons == ["limits.store_unavailable": 3])
        }
    }

    @Test func `a request that has waited too long is decided without the store`() throws {
        let store = HandedTokens(0)
        let bench = try bench(store) { $0.limit("some", [.address], Self.hourly, burst: 1, sharedOr: .local) }
        let client = bench.openClient()
        let exchange = bench.begin(Self.get, on: client.downstream)
        let plan = bench.run { $0.context.snapshot.routeLimits.plans[0] }
        let wait = LimitWait(plan, 0..<1, needsCaller: false, LimitDecisions(), missing: 1) { _ in
            Issue.record("it is over")
        }
        bench.run { loop in
            loop.exchanges[exchange].record.limits.enter()
            loop.exchanges[exchange].record.limits.decided = wait
        }
        #expect(bench.route(Self.get, exchange))
        // What comes too late changes nothing.
        wait.decided(0, TokenDecision(isAllowed: false, missing: 0))
        #expect(bench.mailbox.drain().isEmpty)
    }

    @Test func `the store counts along, so that an outage brings no full bucket`() throws {
        let store = HandedTokens(10)
        let bench = try bench(store) { $0.limit("some", [.address], Self.hourly, burst: 3, sharedOr: .local) }
        #expect(ask(bench).passes && ask(bench).passes)
        store.leave()
        #expect(ask(bench).passes && !ask(bench).passes)
    }

    @Test func `where one limit rejects a request, the store gets its token back`() throws {
        let store = HandedTokens(5)
        let bench = try bench(store) { settings in
            settings.limit("shared", [.address], Self.hourly, burst: 9, sharedOr: .deny)
            settings.limit("own", [.subject], Self.hourly, burst: 1)
        }
        #expect(ask(bench, subject: 1).passes && store.left == 4)
        for _ in 0..<5 { #expect(!ask(bench, subject: 1).passes) }
        #expect(store.left == 4)
        // In one phase, a limit of this process rejects before the store is asked.
        let other = try self.bench(store) { settings in
            settings.limit("shared", [.address], Self.hourly, burst: 9, sharedOr: .deny)
            settings.limit("own", [.host], Self.hourly, burst: 1)
        }
        #expect(ask(other).passes)
        let asked = store.asks.count
        let rejected = ask(other)
        #expect(!rejected.passes && store.asks.count == asked && store.left == 3)
        #expect(rejected.text.contains("RateLimit: \"own\";r=0;"), "\(rejected.text)")
    }

    @Test func `what passed without a token has none to give back`() throws {
        let store = HandedTokens(0)
        store.leave()
        let bench = try bench(store) { settings in
            settings.limit("shared", [.address], Self.hourly, burst: 9, sharedOr: .allow)
            settings.limit("own", [.host], Self.hourly, burst: 1)
        }
        #expect(ask(bench).passes && !ask(bench).passes)
        #expect(store.asks.allSatisfy { $0.returned == 0 })
    }

    @Test func `a limit by the caller waits as well, and finds its decision`() throws {
        let store = HandedTokens(1, missing: Self.hour)
        let bench = try bench(store) { $0.limit("some", [.subject], Self.hourly, burst: 1, sharedOr: .local) }
        #expect(ask(bench, subject: 7).passes && !ask(bench, subject: 7).passes)
        // Names in the store differ by the caller.
        _ = ask(bench, subject: 8)
        #expect(Set(store.asks.map(\.key)).count == 2)
    }

    @Test func `tokens are given back to the limits that gave them, not to those of a new configuration`() throws {
        var next = SampleSettings()
        next.limit("first", [.address], Self.hourly, burst: 2)
        next.limit("second", [.subject], Self.hourly, burst: 1)
        let bench = try bench(HandedTokens(0)) { settings in
            settings.limit("second", [.subject], Self.hourly, burst: 1)
        }
        let client = bench.openClient()
        let exchange = bench.begin(Self.get, on: client.downstream)
        #expect(bench.route(Self.get, exchange))
        next.formerLimits = bench.run { $0.context.snapshot.routeLimits }
        let snapshot = next.snapshot()
        bench.run { $0.context.snapshot = snapshot }
        let used = bench.begin(Self.get, on: bench.openClient().downstream)
        #expect(bench.route(Self.get, used) && admit(bench, used, 1))
        // Rejected by the second limit; the first one has taken nothing of it.
        #expect(!admit(bench, exchange, 1))
        for expected in [true, false] {
            let more = bench.begin(Self.get, on: bench.openClient().downstream)
            #expect(bench.route(Self.get, more) == expected)
        }
    }
}
