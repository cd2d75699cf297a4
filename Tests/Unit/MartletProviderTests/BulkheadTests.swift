import MartletCore
import MartletTesting
import Synchronization
import Testing

@testable import MartletProvider

@Suite struct BulkheadStateTests {
    private static let near = WorkOwner(group: 1, member: 1)
    private static let neighbor = WorkOwner(group: 1, member: 2)
    private static let far = WorkOwner(group: 2, member: 1)

    @Test func `as many calls run as may, the next ones wait, and more are rejected`() {
        var state = BulkheadState(BulkheadLimits(concurrency: 2, queue: 4))
        #expect(state.enter(for: Self.near) == .runs && state.enter(for: Self.near) == .runs)
        #expect(state.enter(for: Self.near) == .waits(ticket: 1, displaced: nil))
        // A quarter of the queue for one address, half of it for its neighbors.
        #expect(state.enter(for: Self.near) == .saturated)
        #expect(state.enter(for: Self.neighbor) == .waits(ticket: 3, displaced: nil))
        #expect(state.enter(for: WorkOwner(group: 1, member: 3)) == .saturated)
        #expect(state.enter(for: Self.far) == .waits(ticket: 5, displaced: nil))
        #expect(state.running == 2 && state.waiting == 3)
    }

    @Test func `waiting calls get their turns by network`() {
        var state = BulkheadState(BulkheadLimits(concurrency: 1, queue: 8))
        _ = state.enter(for: Self.near)
        for owner in [Self.near, Self.near, Self.far] { _ = state.enter(for: owner) }
        #expect(state.leave() == 1 && state.leave() == 3 && state.leave() == 2)
        #expect(state.running == 1 && state.waiting == 0)
        #expect(state.leave() == nil && state.running == 0)
        #expect(state.enter(for: Self.far) == .runs)
    }

    @Test func `one that gives up has no turn`() {
        var state = BulkheadState(BulkheadLimits(concurrency: 1, queue: 8))
        for owner in [Self.near, Self.near, Self.far] { _ = state.enter(for: owner) }
        state.cancel(1)
        #expect(state.waiting == 1 && state.leave() == 2 && state.leave() == nil)
        state.cancel(2)
        #expect(state.running == 0 && state.waiting == 0)
    }

    @Test func `without a queue nothing waits`() {
        var state = BulkheadState(BulkheadLimits(concurrency: 1, queue: 0))
        #expect(state.enter(for: Self.near) == .runs && state.enter(for: Self.far) == .saturated)
        #expect(state.leave() == nil && state.enter(for: Self.far) == .runs)
    }

    @Test func `a call of another network displaces one of a network that has more`() {
        var state = BulkheadState(BulkheadLimits(concurrency: 1, queue: 4))
        _ = state.enter(for: Self.near)
        // Two groups of two fill the queue.
        for (group, member) in [(1, 1), (1, 2), (2, 1), (2, 2)] as [(UInt64, UInt64)] {
            _ = state.enter(for: WorkOwner(group: group, member: member))
        }
        let entry = state.enter(for: WorkOwner(group: 3, member: 1))
        guard case .waits(5, let displaced?) = entry else {
            Issue.record("\(entry)")
            return
        }
        #expect((1...4).contains(displaced) && state.waiting == 4)
    }
}

/// Is set once, on any thread.
private final class Flag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

@Suite struct BulkheadTests {
    private func deadline(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: Clock.system.monotonicTime.nanoseconds + milliseconds * 1_000_000)
    }

    private func bulkhead(_ concurrency: Int, _ queue: Int) -> Bulkhead {
        Bulkhead("test", BulkheadLimits(concurrency: concurrency, queue: queue), clock: .system)
    }

    @Test func `returns what a call returns, and throws what it throws`() async throws {
        let bulkhead = bulkhead(1, 1)
        let value = try await bulkhead.run(until: deadline(5_000), for: .anonymous) { () throws(AuthenticationError) in
            7
        }
        #expect(value == 7)
        let error = await #expect(throws: AuthenticationError.self) {
            try await bulkhead.run(until: deadline(5_000), for: .anonymous) { () throws(AuthenticationError) -> Int in
                throw .denied("test.denied")
            }
        }
        #expect(error?.code == "test.denied" && error?.disposition == .denied)
        while bulkhead.counts.running > 0 { await Task.yield() }
        #expect(bulkhead.counts == Bulkhead.Counts())
    }

    @Test func `a call that blocks beyond its deadline is given up, and keeps its permit until it ends`() async {
        let bulkhead = bulkhead(1, 0)
        let released = Gate()
        let late = await #expect(throws: AuthenticationError.self) {
            try await bulkhead.run(until: deadline(20), for: .anonymous) { () throws(AuthenticationError) -> Int in
                released.block()
                return 7
            }
        }
        #expect(late?.code == "provider.timeout" && late?.disposition == .unavailable)
        let next = await #expect(throws: AuthenticationError.self) {
            try await bulkhead.run(until: deadline(5_000), for: .anonymous) { () throws(AuthenticationError) in 8 }
        }
        #expect(next?.code == "provider.saturated" && next?.disposition == .unavailable)
        #expect(bulkhead.counts == Bulkhead.Counts(running: 1, waiting: 0, saturated: 1, timedOut: 1))
        released.open()
        while bulkhead.counts.running > 0 { await Task.yield() }
        let value = try? await bulkhead.run(until: deadline(5_000), for: .anonymous) { () throws(AuthenticationError) in
            9
        }
        #expect(value == 9)
    }

    @Test func `a call that waits gets its turn, or gives up at its deadline`() async throws {
        let bulkhead = bulkhead(1, 8)
        let released = Gate()
        async let first = bulkhead.run(until: deadline(20_000), for: .anonymous) { () throws(AuthenticationError) in
            released.block()
            return 1
        }
        while bulkhead.counts.running == 0 { await Task.yield() }
        let late = await #expect(throws: AuthenticationError.self) {
            try await bulkhead.run(until: deadline(20), for: .anonymous) { () throws(AuthenticationError) in 2 }
        }
        #expect(late?.code == "provider.saturated")
        async let second = bulkhead.run(until: deadline(20_000), for: .anonymous) { () throws(AuthenticationError) in 3
        }
        while bulkhead.counts.waiting == 0 { await Task.yield() }
        released.open()
        let values = try await [first, second]
        #expect(values == [1, 3])
    }

    @Test func `a call is cancelled with its caller, and at its deadline`() async {
        let bulkhead = bulkhead(2, 0)
        let seen = (Flag(), Flag())
        @Sendable func waiting(until deadline: MonotonicTime) async throws(AuthenticationError) -> Int {
            try await bulkhead.run(until: deadline, for: .anonymous) { () throws(AuthenticationError) -> Int in
                while !Task.isCancelled { await Task.yield() }
                if seen.0.isSet { seen.1.set() } else { seen.0.set() }
                throw .unavailable("test.cancelled")
            }
        }
        let (soon, far) = (deadline(20), deadline(20_000))
        let caller = Task { try await waiting(until: far) }
        while bulkhead.counts.running == 0 { await Task.yield() }
        caller.cancel()
        #expect(await caller.result.code == "provider.timeout")
        let late = await Task { try await waiting(until: soon) }.result
        #expect(late.code == "provider.timeout")
        while bulkhead.counts.running > 0 { await Task.yield() }
        #expect(seen.0.isSet && seen.1.isSet)
    }

    @Test func `calls that block their threads hold up nothing else`() async throws {
        let bulkhead = bulkhead(16, 64)
        let released = Gate()
        // No part of what is tested: it only ends a test that hangs, however busy the machine is.
        let far = deadline(120_000)
        let blocked = (0..<64).map { index in
            Task {
                try await bulkhead.run(
                    until: far, for: WorkOwner(group: UInt64(index), member: 0)
                ) { () throws(AuthenticationError) in
                    released.block()
                    return index
                }
            }
        }
        while bulkhead.counts.running < 16 || bulkhead.counts.waiting < 48 { await Task.yield() }
        // Many more than there are processors: without threads of their own nothing would run any more.
        let sum = await withTaskGroup(of: Int.self) { group in
            for value in 0..<100 { group.addTask { value } }
            return await group.reduce(0, +)
        }
        #expect(sum == 4950)
        released.open()
        var results: Set<Int> = []
        for task in blocked { results.insert(try await task.value) }
        #expect(results == Set(0..<64))
    }
}

extension Result where Failure == any Error {
    fileprivate var code: ErrorCode? {
        guard case .failure(let error) = self else { return nil }
        return (error as? AuthenticationError)?.code
    }
}
