import MartletCore
import Testing

@testable import MartletServer

@Suite struct ReadOnlyStoreTests {
    private let base = MemoryStore(clock: .system)
    private var store: ReadOnlyStore { ReadOnlyStore(base, clock: .system) }

    private func value(_ key: String, in store: any SharedStoring) async -> [UInt8]? {
        if case .found(let value) = await store.value(for: key) { value } else { nil }
    }

    @Test func `sees what is there and its own changes, which no other store sees`() async throws {
        let store = store
        try await base.set([1], for: "a", lifetime: .seconds(60))
        #expect(await value("a", in: store) == [1])
        try await store.set([2], for: "a", lifetime: .seconds(60))
        #expect(await value("a", in: store) == [2])
        #expect(await value("a", in: base) == [1])
        #expect(try await store.setIfAbsent([3], for: "a", lifetime: .seconds(60)) == false)
        #expect(try await store.setIfAbsent([3], for: "b", lifetime: .seconds(60)))
        #expect(try await store.setIfAbsent([4], for: "b", lifetime: .seconds(60)) == false)
        #expect(await value("b", in: store) == [3])
        #expect(await value("b", in: base) == nil)
    }

    @Test func `takes and removes for itself alone`() async throws {
        let store = store
        for key in ["a", "b", "c"] { try await base.set([1], for: key, lifetime: .seconds(60)) }
        if case .found(let taken) = await store.take("a") { #expect(taken == [1]) } else { Issue.record("nothing") }
        if case .miss = await store.take("a") {} else { Issue.record("taken twice") }
        try await store.remove("b")
        try await store.remove("c", ifEqualTo: [2])
        #expect(await value("b", in: store) == nil)
        #expect(await value("c", in: store) == [1])
        try await store.remove("c", ifEqualTo: [1])
        #expect(await value("c", in: store) == nil)
        #expect(try await store.setIfAbsent([2], for: "c", lifetime: .seconds(60)))
        for key in ["a", "b", "c"] { #expect(await value(key, in: base) == [1]) }
    }

    @Test func `counts on from what is there`() async throws {
        let store = store
        _ = try await base.increment("n", lifetime: .seconds(60))
        #expect(try await store.increment("n", lifetime: .seconds(60)).count == 2)
        #expect(try await store.increment("n", lifetime: .seconds(60)).count == 3)
        #expect(try await store.counter("n").count == 3)
        #expect(try await base.counter("n").count == 1)
    }
}
