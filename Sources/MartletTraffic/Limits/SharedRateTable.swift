internal import MartletCore
private import Synchronization

/// The buckets of one limit in the store, as far as this process knows them: see ``TokenLease``.
///
/// Divided into parts with a lock each, which is held for a few instructions and never while the store is asked. A part
/// that is full forgets keys for which there is nothing to keep, or else any that no request waits for: what it had
/// leased of them is lost to it, so that it never passes more for it.
package final class SharedRateTable: Sendable {
    /// What decides about a request.
    package enum Step: Sendable, Equatable {
        case decided(TokenDecision)
        /// The store has to be asked: see ``join(_:_:named:at:_:_:)``.
        case ask
        /// The store is not available.
        case unavailable
    }

    private struct Waiter {
        let request: any TokenWaiting
        let index: Int
    }

    private struct Entry {
        var lease = TokenLease()
        /// The store's key; empty until it is asked.
        var name: [UInt8] = []
        /// Requests that the current ask is for, and those that the next one will be for.
        var asking: [Waiter] = []
        var waiting: [Waiter] = []
    }

    private final class Part: Sendable {
        let entries = Lock<[RateKey: Entry]>([:])
    }

    private static let partCount = 16

    package let client: StoreClient
    private let parts: [Part]
    private let capacity: Int
    private let evicted = Atomic<Int>(0)

    /// - Parameter entries: the number of keys that it knows at most.
    package init(entries: Int, client: StoreClient) {
        self.client = client
        parts = (0..<Self.partCount).map { _ in Part() }
        capacity = max(entries / Self.partCount, 1)
    }

    /// How many keys it knows.
    package var count: Int { parts.reduce(0) { sum, part in sum + part.entries.withLock { $0.count } } }

    /// How many keys it has forgotten for others.
    package var evictions: Int { evicted.load(ordering: .relaxed) }

    /// Takes a token that was leased, or decides that there is none.
    package func take(_ key: RateKey, _ rate: TokenRate, at now: Int64) -> Step {
        let known = part(of: key).entries.withLock { $0[key]?.lease.take(rate, at: now) } ?? .ask
        if case .decided(let decision) = known { return .decided(decision) }
        switch client.step(at: now) {
        case .ask: return .ask
        case .skip: return .unavailable
        case .probe:
            // Takes nothing: the request is decided without the store.
            client.ask(TokenAsk(probing: rate)) { _, _ in }
            return .unavailable
        }
    }

    /// Has a request wait for the store.
    /// - Parameters:
    ///   - name: the store's key.
    ///   - index: of this limit among those that the request waits for.
    package func join(
        _ key: RateKey, _ rate: TokenRate, named name: @autoclosure () -> [UInt8], at now: Int64,
        _ request: any TokenWaiting, _ index: Int
    ) {
        let (ask, decision): (TokenAsk?, TokenDecision?) = part(of: key).entries.withLock { entries in
            makeRoom(in: &entries, for: key, at: now)
            var entry = entries[key] ?? Entry()
            defer { entries[key] = entry }
            // Tokens may have come since the request found none.
            if case .decided(let decision) = entry.lease.take(rate, at: now) { return (nil, decision) }
            if entry.name.isEmpty { entry.name = name() }
            entry.waiting.append(Waiter(request: request, index: index))
            return (entry.lease.isAsking ? nil : begin(&entry, rate, at: now), nil)
        }
        if let decision { request.decided(index, decision) }
        if let ask { send(ask, of: key, rate) }
    }

    /// Gives back a token that the store has granted.
    package func giveBack(_ key: RateKey, _ rate: TokenRate, named name: @autoclosure () -> [UInt8], at now: Int64) {
        let ask: TokenAsk? = part(of: key).entries.withLock { entries in
            makeRoom(in: &entries, for: key, at: now)
            var entry = entries[key] ?? Entry()
            if entry.name.isEmpty { entry.name = name() }
            entry.lease.giveBack(at: now)
            let isDue = entry.lease.returned > 0 && !entry.lease.isAsking
            let ask = isDue ? begin(&entry, rate, at: now) : nil
            entries[key] = entry
            return ask
        }
        if let ask { send(ask, of: key, rate) }
    }

    private func part(of key: RateKey) -> Part {
        parts[Int(truncatingIfNeeded: key.firstGroup(of: UInt64(parts.count)))]
    }

    private func begin(_ entry: inout Entry, _ rate: TokenRate, at now: Int64) -> TokenAsk {
        entry.asking = entry.waiting
        entry.waiting = []
        var ask = entry.lease.ask(for: entry.asking.count, rate, at: now)
        ask.key = entry.name
        return ask
    }

    private func send(_ ask: TokenAsk, of key: RateKey, _ rate: TokenRate) {
        client.ask(ask) { [self] grant, now in finish(ask, grant, of: key, rate, at: now) }
    }

    /// The store has responded, or will not.
    private func finish(_ ask: TokenAsk, _ grant: TokenGrant?, of key: RateKey, _ rate: TokenRate, at now: Int64) {
        var decided: [(Waiter, TokenDecision?)] = []
        let next: TokenAsk? = part(of: key).entries.withLock { entries in
            guard var entry = entries[key] else { return nil }
            defer { entries[key] = entry }
            let decisions = entry.lease.finish(ask, grant, at: now)
            for (number, waiter) in entry.asking.enumerated() {
                decided.append((waiter, decisions.indices.contains(number) ? decisions[number] : nil))
            }
            entry.asking = []
            // Those that came meanwhile: leased tokens may be enough, or there are none.
            var rest: [Waiter] = []
            for waiter in entry.waiting {
                if grant == nil {
                    decided.append((waiter, nil))
                } else if case .decided(let decision) = entry.lease.take(rate, at: now) {
                    decided.append((waiter, decision))
                } else {
                    rest.append(waiter)
                }
            }
            entry.waiting = rest
            return rest.isEmpty && (entry.lease.returned == 0 || grant == nil) ? nil : begin(&entry, rate, at: now)
        }
        for (waiter, decision) in decided { waiter.request.decided(waiter.index, decision) }
        if let next { send(next, of: key, rate) }
    }

    private func makeRoom(in entries: inout [RateKey: Entry], for key: RateKey, at now: Int64) {
        guard entries.count >= capacity, entries[key] == nil else { return }
        let before = entries.count
        // Many at a time, since all of them are looked at.
        entries = entries.filter { !$0.value.lease.isIdle(at: now) }
        let target = capacity - capacity / 8 - 1
        if entries.count > target {
            let forgotten = entries.filter { !$0.value.lease.isAsking && $0.value.waiting.isEmpty }.keys
            for key in forgotten.prefix(entries.count - target) { entries[key] = nil }
        }
        evicted.add(before - entries.count, ordering: .relaxed)
    }
}

extension TokenAsk {
    /// An ask that takes nothing.
    fileprivate init(probing rate: TokenRate) {
        self.init()
        self.rate = rate
    }
}
