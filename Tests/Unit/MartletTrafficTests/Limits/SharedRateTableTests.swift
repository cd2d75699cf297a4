import MartletTesting
import Synchronization
import Testing

@testable import MartletTraffic

/// A store in memory that responds when a test says so: the rules of the script, with one clock.
final class ScriptedTokens: SharedTokenStoring {
    private struct State {
        var buckets: [[UInt8]: TokenBucket] = [:]
        var asks: [TokenAsk] = []
        var held: [@Sendable () -> Void] = []
        var isHolding = false
        var isFailing = false
    }

    private let state = Mutex(State())
    private let time: Box<Int64>

    init(_ time: Box<Int64>) { self.time = time }

    var asks: [TokenAsk] { state.withLock { $0.asks } }

    func hold() { state.withLock { $0.isHolding = true } }

    func fail(_ fails: Bool) { state.withLock { $0.isFailing = fails } }

    /// Responds to what was asked.
    func release() {
        let held = state.withLock { state in
            state.isHolding = false
            defer { state.held = [] }
            return state.held
        }
        for one in held { one() }
    }

    func ask(_ ask: TokenAsk, _ completion: @escaping @Sendable (TokenGrant?) -> Void) {
        let isHeld = state.withLock { state in
            state.asks.append(ask)
            if state.isHolding { state.held.append { [self] in completion(grant(ask)) } }
            return state.isHolding
        }
        if !isHeld { completion(grant(ask)) }
    }

    private func grant(_ ask: TokenAsk) -> TokenGrant? {
        let now = time.value
        return state.withLock { state in
            guard !state.isFailing else { return nil }
            var bucket = state.buckets[ask.key] ?? TokenBucket()
            for _ in 0..<ask.returned { bucket.giveBack(ask.rate) }
            var granted = 0
            while granted < ask.waiting, bucket.take(ask.rate, at: now).isAllowed { granted += 1 }
            var extra = 0
            while extra < ask.extra, bucket.take(ask.rate, at: now).isAllowed { extra += 1 }
            state.buckets[ask.key] = bucket
            return TokenGrant(granted: granted, extra: extra, missing: max(bucket.fullAt - now, 0))
        }
    }
}

/// A request that waits, and what it got.
private final class Waiting: TokenWaiting {
    let decisions = Box<[TokenDecision?]>([])

    func decided(_ index: Int, _ decision: TokenDecision?) { decisions.withLock { $0.append(decision) } }

    var allowed: [Bool?] { decisions.value.map { $0?.isAllowed } }
}

@Suite struct SharedRateTableTests {
    private static let millisecond: Int64 = 1_000_000
    private static let rate = TokenRate(count: 100, burst: 9)

    private let time = Box<Int64>(1_000_000_000)
    private let store: ScriptedTokens
    private let client: StoreClient

    init() {
        let time = time
        store = ScriptedTokens(time)
        client = StoreClient(store) { time.value }
    }

    private func key(_ number: Int) -> RateKey {
        var builder = RateKeyBuilder()
        builder.add(hash: number)
        return builder.build()
    }

    private func join(_ table: SharedRateTable, _ number: Int = 1) -> Waiting {
        let waiting = Waiting()
        table.join(key(number), Self.rate, named: [UInt8(number & 0xFF)], at: time.value, waiting, 0)
        return waiting
    }

    @Test func `requests that come while the store is asked are asked for together`() {
        let table = SharedRateTable(entries: 100, client: client)
        store.hold()
        let first = join(table)
        let others = (0..<20).map { _ in join(table) }
        #expect(store.asks.map(\.waiting) == [1] && first.allowed.isEmpty)
        store.release()
        #expect(first.allowed == [true])
        #expect(others.flatMap(\.allowed) == Array(repeating: true, count: 8) + Array(repeating: false, count: 12))
        #expect(store.asks.map(\.waiting) == [1, 20])
    }

    @Test func `a rejected key does not ask before its next token`() {
        let table = SharedRateTable(entries: 100, client: client)
        for _ in 0..<11 { _ = join(table) }
        let asked = store.asks.count
        for _ in 0..<100 { #expect(table.take(key(1), Self.rate, at: time.value) != .ask) }
        #expect(store.asks.count == asked)
        time.withLock { $0 += 10 * Self.millisecond }
        #expect(table.take(key(1), Self.rate, at: time.value) == .ask)
        #expect(join(table).allowed == [true])
    }

    @Test func `a store that does not respond is left alone, and found again`() {
        let table = SharedRateTable(entries: 100, client: client)
        store.fail(true)
        for _ in 0..<3 {
            #expect(table.take(key(1), Self.rate, at: time.value) == .ask)
            #expect(join(table).allowed == [nil])
        }
        #expect(table.take(key(1), Self.rate, at: time.value) == .unavailable)
        #expect(store.asks.count == 3 && client.failureCount == 3)
        store.fail(false)
        time.withLock { $0 += StoreBreaker.pause }
        // The probe takes no token, and its request does not wait.
        #expect(table.take(key(1), Self.rate, at: time.value) == .unavailable)
        #expect(store.asks.last?.waiting == 0 && store.asks.last?.key == [])
        #expect(table.take(key(1), Self.rate, at: time.value) == .ask)
    }

    @Test func `requests that waited too long count as failures, a late response ends the pause`() {
        let table = SharedRateTable(entries: 100, client: client)
        store.hold()
        let waiting = (0..<3).map { _ in join(table) }
        for _ in waiting { client.timedOut(at: time.value) }
        #expect(table.take(key(2), Self.rate, at: time.value) == .unavailable)
        store.release()
        #expect(table.take(key(2), Self.rate, at: time.value) == .ask)
    }

    @Test func `a store that is slower than requests wait is unavailable, and says so once, until it is quick again`() {
        let changes = Box<[Bool]>([])
        let time = time
        let slow = StoreClient(
            store, longestWait: 75 * Self.millisecond, clock: { time.value },
            onChange: { isAway in changes.withLock { $0.append(isAway) } })
        let table = SharedRateTable(entries: 100, client: slow)
        for _ in 0..<3 {
            store.hold()
            _ = join(table)
            time.withLock { $0 += 80 * Self.millisecond }
            slow.timedOut(at: time.value)
            store.release()
        }
        #expect(slow.isAway && changes.value == [true])
        #expect(table.take(key(2), Self.rate, at: time.value) == .unavailable)
        // Its own probe ends it, and so does time without requests.
        time.withLock { $0 += 61_000 * Self.millisecond }
        #expect(!slow.isAway)
        #expect(table.take(key(2), Self.rate, at: time.value) == .unavailable)
        #expect(changes.value == [true, false] && !slow.isAway)
    }

    @Test func `a token that is given back is the store's again`() {
        let table = SharedRateTable(entries: 100, client: client)
        for _ in 0..<9 { #expect(join(table).allowed == [true]) }
        #expect(join(table).allowed == [false])
        table.giveBack(key(1), Self.rate, named: [1], at: time.value)
        #expect(store.asks.last?.returned == 1 && store.asks.last?.waiting == 0)
        #expect(join(table).allowed == [true] && join(table).allowed == [false])
    }

    @Test func `it never knows more keys than it has room for`() {
        let table = SharedRateTable(entries: 160, client: client)
        for number in 0..<5_000 { _ = join(table, number) }
        #expect(table.count <= 160 && table.evictions >= 4_840)
        // Keys that wait are kept.
        store.hold()
        let waiting = (0..<400).map { join(table, $0) }
        store.release()
        #expect(waiting.allSatisfy { $0.allowed.count == 1 })
    }
}

@Suite struct StoreKeyBuilderTests {
    private func bytes(_ build: (inout StoreKeyBuilder) -> Void) -> [UInt8] {
        var builder = StoreKeyBuilder(Array("limit".utf8))
        build(&builder)
        return builder.bytes
    }

    private func text(_ parts: [String]) -> [UInt8] {
        bytes { builder in
            for part in parts { unsafe Array(part.utf8).withUnsafeBufferPointer { unsafe builder.add($0) } }
        }
    }

    private func host(_ name: String) -> [UInt8] {
        bytes { builder in unsafe Array(name.utf8).withUnsafeBufferPointer { unsafe builder.add(host: $0) } }
    }

    @Test func `different keys have different names`() {
        let all = [
            text([]), text([""]), text(["", ""]), text(["ab"]), text(["a", "b"]), text(["b", "a"]),
            bytes { $0.addMissing() }, bytes { $0.add(hash: 0) }, bytes { $0.add(hash: 1) }, host("a"),
            StoreKeyBuilder(Array("other".utf8)).bytes,
        ]
        #expect(Set(all).count == all.count)
    }

    @Test func `a host is the same in any case, with and without a port`() {
        #expect(host("Example.com:80") == host("example.COM.") && host(":80") == bytes { $0.addMissing() })
    }
}
