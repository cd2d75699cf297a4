import MartletCore
import MartletJOSE
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct SharedKeysTests {
    let time = VirtualTime()
    let store: StoreInMemory
    let issuer: ScriptedIssuer

    init() throws {
        store = StoreInMemory(clock: time.clock)
        issuer = try ScriptedIssuer(Instance.document([0, 1]))
    }

    private func instance() throws -> Instance { try Instance(time: time, issuer: issuer, store: store) }

    private func recordKey() throws -> String {
        try #require(store.keys.first { !$0.hasSuffix("lease") && !$0.hasSuffix("cooldown") })
    }

    /// Puts a record where instances look for it.
    private func plant(_ document: [UInt8], age: Int64, version: String = "martlet-jwks-1") async throws {
        _ = try await instance().settle("ONE")
        let fetchedAt = time.clock.unixTime.seconds - age
        try await store.set(
            Array("\(version) \(fetchedAt)\n".utf8) + document, for: recordKey(), lifetime: .seconds(86_400))
    }

    @Test func `one instance fetches and the others read`() async throws {
        let instances = try (0..<5).map { _ in try instance() }
        for instance in instances {
            #expect(try await instance.settle("ONE") == "ONE")
        }
        #expect(issuer.fetches == 1)
        #expect(instances.map(\.keys.status.source) == [.issuer, .store, .store, .store, .store])
    }

    @Test func `instances that begin together wait for the one that fetches`() async throws {
        issuer.hold()
        let instances = try (0..<4).map { _ in try instance() }
        try await withThrowingTaskGroup(of: String.self) { group in
            for instance in instances { group.addTask { try await instance.settle("ONE") } }
            // Each has its guardian; the three without the lease sleep between two looks at the store.
            try await eventually("one asks, three wait") { issuer.fetches == 1 && time.sleepers == 4 + 3 }
            time.advance(by: .milliseconds(100))
            try await eventually("they look again") { time.sleepers == 4 + 3 }
            issuer.release()
            // The lease, which is a key too, goes after the record has come.
            try await eventually("the record alone is there") {
                store.keys.count == 1 && store.keys.allSatisfy { !$0.hasSuffix("lease") }
            }
            time.advance(by: .milliseconds(100))
            for try await word in group { #expect(word == "ONE") }
        }
        #expect(issuer.fetches == 1)
    }

    @Test func `what another has written until the lease is ours needs no fetch`() async throws {
        let (first, second) = (try instance(), try instance())
        // The second has found nothing in the store; the first does all its work before the second asks for the lease.
        store.beforeNextClaim { _ = try? await first.settle("ONE") }
        #expect(try await second.settle("ONE") == "ONE")
        #expect(issuer.fetches == 1 && second.keys.status.source == .store)
        #expect(store.keys.count == 1)
    }

    @Test func `when the one that fetches fails another tries`() async throws {
        issuer.hold()
        issuer.fail()
        let (first, second) = (try instance(), try instance())
        async let one = first.settle("ONE")
        try await eventually("first asks") { issuer.fetches == 1 }
        async let two = second.settle("ONE")
        try await eventually("second waits") { time.sleepers == 3 }
        issuer.release()
        #expect(try await one == "unavailable")
        issuer.answer(try Instance.document([0]))
        try await eventually("the lease is free") { store.keys.isEmpty }
        time.advance(by: .milliseconds(100))
        #expect(try await two == "ONE")
        #expect(issuer.fetches == 2)
    }

    @Test func `a lease whose holder is gone runs out`() async throws {
        _ = try await instance().settle("ONE")
        let record = try recordKey()
        try await store.set([1], for: "\(record):lease", lifetime: .seconds(5))
        try await store.set([], for: record, lifetime: .seconds(86_400))
        let late = try instance()
        async let word = late.settle("ONE")
        for _ in 0..<31 {
            try await eventually("it waits") { time.sleepers == 2 || late.keys.status.failures == 1 }
            time.advance(by: .milliseconds(100))
        }
        #expect(try await word == "unavailable")
        #expect(late.keys.status.lastError == "jwks.lease_timeout")
        time.advance(by: .seconds(3))
        #expect(try await late.settle("ONE") == "ONE")
    }

    @Test func `a record that is too new, too old, damaged or useless is not believed`() async throws {
        let document = try Instance.document([2])
        let foreign = Array("{\"keys\":[{\"kty\":\"oct\",\"kid\":\"ONE\",\"k\":\"AAAA\"}]}".utf8)
        let records: [([UInt8], Int64, String)] = [
            (document, -1, "martlet-jwks-1"), (document, 86_400, "martlet-jwks-1"), (document, 0, "martlet-jwks-2"),
            (document, 0, ""), (foreign, 0, "martlet-jwks-1"), ([], 0, "martlet-jwks-1"),
        ]
        for (document, age, version) in records {
            try await plant(document, age: age, version: version)
            let fetches = issuer.fetches
            let reader = try instance()
            #expect(try await reader.settle("ONE") == "ONE")
            #expect(reader.keys.status.source == .issuer)
            #expect(issuer.fetches == fetches + 1)
        }
    }

    @Test func `a record past its ttl serves while the issuer fails`() async throws {
        try await plant(try Instance.document([2]), age: 7200)
        issuer.fail()
        let reader = try instance()
        #expect(try await reader.settle("THREE") == "THREE")
        let status = reader.keys.status
        #expect(status.source == .store)
        #expect(status.age == .seconds(7200))
        #expect(status.isStale)
        time.advance(by: .seconds(86_400 - 7200))
        #expect(try reader.lookup("THREE") != "THREE")
    }

    @Test func `a broken store only means asking the issuer`() async throws {
        store.isBroken = true
        let (first, second) = (try instance(), try instance())
        for instance in [first, second] {
            // Half the fetch's time is for the store.
            async let word = instance.settle("ONE")
            let count = issuer.fetches
            for _ in 0..<75 {
                try await eventually("it waits") { time.sleepers == 2 }
                #expect(issuer.fetches == count)
                time.advance(by: .milliseconds(20))
            }
            #expect(try await word == "ONE")
        }
        #expect(try await second.settle("nobody") == "unknown")
        #expect(try await second.settle("nobody-else") == "unknown")
        #expect(issuer.fetches == 3)
    }

    @Test func `the first keys wait for the store, and need no fetch when it has them`() async throws {
        _ = try await instance().settle("ONE")
        store.isBroken = true
        let late = try instance()
        async let word = late.settle("ONE")
        for _ in 0..<10 {
            try await eventually("it waits") { time.sleepers == 2 }
            time.advance(by: .milliseconds(20))
        }
        try await eventually("it waits") { time.sleepers == 2 }
        store.isBroken = false
        time.advance(by: .milliseconds(20))
        #expect(try await word == "ONE")
        #expect(late.keys.status.source == .store && issuer.fetches == 1)
        // Keys that are held wait for nothing.
        store.isBroken = true
        #expect(try await late.settle("THREE") == "unknown")
        #expect(issuer.fetches == 2)
    }

    @Test func `a key that another instance has asked for in vain is not told to be unknown`() async throws {
        let (first, second) = (try instance(), try instance())
        _ = try await first.settle("ONE")
        _ = try await second.settle("ONE")
        time.advance(by: .seconds(120))
        issuer.fail()
        #expect(try await first.settle("THREE") == "unavailable")
        func ask(_ name: String) async throws -> String {
            async let word = second.settle(name)
            for _ in 0..<11 {
                try await eventually("it waits") {
                    time.sleepers >= 2 || (try? second.lookup(name)) != "undecided"
                }
                time.advance(by: .milliseconds(100))
            }
            return try await word
        }
        #expect(try await ask("THREE") == "unavailable")
        #expect(issuer.fetches == 2 && second.keys.status.failures == 0)
        #expect(try second.lookup("THREE") == "unavailable" && second.lookup("TWO") == "TWO")
        // It looks again soon, and finds what the other has got meanwhile.
        issuer.answer(try Instance.document([0, 2]))
        time.advance(by: .seconds(60))
        #expect(try await first.settle("THREE") == "THREE")
        #expect(try await second.settle("THREE") == "THREE")
        #expect(issuer.fetches == 3)
        // A failure of its own is not made good by another's.
        issuer.fail()
        time.advance(by: .seconds(60))
        #expect(try await second.settle("FOUR") == "unavailable")
        time.advance(by: .seconds(60))
        #expect(try await first.settle("FOUR") == "unavailable")
        #expect(try await ask("FOUR") == "unavailable")
        #expect(second.keys.status.failures == 1 && second.keys.status.lastError == "fetch.status")
    }

    @Test func `instances share the cooldown of unknown keys`() async throws {
        let (first, second) = (try instance(), try instance())
        _ = try await first.settle("ONE")
        _ = try await second.settle("ONE")
        #expect(try await first.settle("nobody") == "unknown")
        #expect(issuer.fetches == 2)
        async let word = second.settle("nobody-else")
        for _ in 0..<11 {
            try await eventually("it waits") { time.sleepers >= 2 || (try? second.lookup("nobody-else")) == "unknown" }
            time.advance(by: .milliseconds(100))
        }
        #expect(try await word == "unknown")
        #expect(issuer.fetches == 2)
        #expect(try second.lookup("ONE") == "ONE")
    }

    @Test func `a rotated key that one instance has found is there for all`() async throws {
        let (first, second) = (try instance(), try instance())
        _ = try await first.settle("ONE")
        _ = try await second.settle("ONE")
        issuer.answer(try Instance.document([0, 2]))
        #expect(try await first.settle("THREE") == "THREE")
        #expect(try await second.settle("THREE") == "THREE")
        #expect(issuer.fetches == 2)
        #expect(second.removed.value.map(\.text) == ["TWO"])
    }
}
