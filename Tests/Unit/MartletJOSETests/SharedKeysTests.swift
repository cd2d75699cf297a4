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

    /// Stores a record for the instances to read.
    private func plant(_ document: [UInt8], age: Int64, version: String = "martlet-jwks-1") async throws {
        _ = try await instance().resolve("ONE")
        let fetchedAt = time.clock.unixTime.seconds - age
        try await store.set(
            Array("\(version) \(fetchedAt)\n".utf8) + document, for: recordKey(), lifetime: .seconds(86_400))
    }

    @Test func `one instance fetches and the others read`() async throws {
        let instances = try (0..<5).map { _ in try instance() }
        for instance in instances {
            #expect(try await instance.resolve("ONE") == "ONE")
        }
        #expect(issuer.fetches == 1)
        #expect(instances.map(\.keys.status.source) == [.issuer, .store, .store, .store, .store])
    }

    @Test func `instances that start together wait for the one that fetches`() async throws {
        issuer.hold()
        let instances = try (0..<4).map { _ in try instance() }
        try await withThrowingTaskGroup(of: String.self) { group in
            for instance in instances { group.addTask { try await instance.resolve("ONE") } }
            // Each has a timeout task; the three without the lease also sleep between two reads of the store.
            try await eventually("one fetches, three wait") { issuer.fetches == 1 && time.sleepers == 4 + 3 }
            time.advance(by: .milliseconds(100))
            try await eventually("they poll again") { time.sleepers == 4 + 3 }
            issuer.release()
            // The lease, a key too, is removed after the record has been written.
            try await eventually("only the record is left") {
                store.keys.count == 1 && store.keys.allSatisfy { !$0.hasSuffix("lease") }
            }
            time.advance(by: .milliseconds(100))
            for try await word in group { #expect(word == "ONE") }
        }
        #expect(issuer.fetches == 1)
    }

    @Test(arguments: [StoreInMemory.Replica.current, .late])
    func `a record written before the lease was acquired needs no fetch`(
        _ replica: StoreInMemory.Replica
    ) async throws {
        store.replicaState = replica
        let (first, second) = (try instance(), try instance())
        // The second has found nothing in the store; the first completes before the second claims the lease.
        store.beforeNextClaim { _ = try? await first.resolve("ONE") }
        #expect(try await second.resolve("ONE") == "ONE")
        #expect(issuer.fetches == 1 && second.keys.status.source == .store)
        #expect(store.keys.count == 1)
    }

    @Test func `an instance that starts while the master is unavailable gets its keys from a replica`() async throws {
        #expect(try await instance().resolve("ONE") == "ONE")
        store.isBroken = true
        store.replicaState = .independent
        let started = try instance()
        #expect(try await started.resolve("ONE") == "ONE")
        #expect(issuer.fetches == 1 && started.keys.status.source == .store)
    }

    @Test func `when the instance that fetches fails, another one fetches`() async throws {
        issuer.hold()
        issuer.fail()
        let (first, second) = (try instance(), try instance())
        async let one = first.resolve("ONE")
        try await eventually("first asks") { issuer.fetches == 1 }
        async let two = second.resolve("ONE")
        try await eventually("second waits") { time.sleepers == 3 }
        issuer.release()
        #expect(try await one == "unavailable")
        issuer.respond(try Instance.document([0]))
        try await eventually("the lease is free") { store.keys.isEmpty }
        time.advance(by: .milliseconds(100))
        #expect(try await two == "ONE")
        #expect(issuer.fetches == 2)
    }

    @Test func `a lease whose holder is gone expires`() async throws {
        _ = try await instance().resolve("ONE")
        let record = try recordKey()
        try await store.set([1], for: "\(record):lease", lifetime: .seconds(5))
        try await store.set([], for: record, lifetime: .seconds(86_400))
        let late = try instance()
        async let word = late.resolve("ONE")
        for _ in 0..<31 {
            try await eventually("it waits") { time.sleepers == 2 || late.keys.status.failures == 1 }
            time.advance(by: .milliseconds(100))
        }
        #expect(try await word == "unavailable")
        #expect(late.keys.status.lastError == "jwks.lease_timeout")
        time.advance(by: .seconds(3))
        #expect(try await late.resolve("ONE") == "ONE")
    }

    @Test func `a record that is too new, too old, corrupt or unusable is not used`() async throws {
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
            #expect(try await reader.resolve("ONE") == "ONE")
            #expect(reader.keys.status.source == .issuer)
            #expect(issuer.fetches == fetches + 1)
        }
    }

    @Test func `a record past its ttl serves while the issuer fails`() async throws {
        try await plant(try Instance.document([2]), age: 7200)
        issuer.fail()
        let reader = try instance()
        #expect(try await reader.resolve("THREE") == "THREE")
        let status = reader.keys.status
        #expect(status.source == .store)
        #expect(status.age == .seconds(7200))
        #expect(status.isStale)
        time.advance(by: .seconds(86_400 - 7200))
        #expect(try reader.lookup("THREE") != "THREE")
    }

    @Test func `without the store every instance fetches from the issuer`() async throws {
        store.isBroken = true
        let (first, second) = (try instance(), try instance())
        for instance in [first, second] {
            // Half of the fetch timeout is spent on the store.
            async let word = instance.resolve("ONE")
            let count = issuer.fetches
            for _ in 0..<75 {
                try await eventually("it waits") { time.sleepers == 2 }
                #expect(issuer.fetches == count)
                time.advance(by: .milliseconds(20))
            }
            #expect(try await word == "ONE")
        }
        #expect(try await second.resolve("nobody") == "unknown")
        #expect(try await second.resolve("nobody-else") == "unknown")
        #expect(issuer.fetches == 3)
    }

    @Test func `the first refresh waits for the store, and needs no fetch when it has the keys`() async throws {
        _ = try await instance().resolve("ONE")
        store.isBroken = true
        let late = try instance()
        async let word = late.resolve("ONE")
        for _ in 0..<10 {
            try await eventually("it waits") { time.sleepers == 2 }
            time.advance(by: .milliseconds(20))
        }
        try await eventually("it waits") { time.sleepers == 2 }
        store.isBroken = false
        time.advance(by: .milliseconds(20))
        #expect(try await word == "ONE")
        #expect(late.keys.status.source == .store && issuer.fetches == 1)
        // Cached keys are not delayed by the store.
        store.isBroken = true
        #expect(try await late.resolve("THREE") == "unknown")
        #expect(issuer.fetches == 2)
    }

    @Test func `a key is not unknown when another instance's fetch has failed`() async throws {
        let (first, second) = (try instance(), try instance())
        _ = try await first.resolve("ONE")
        _ = try await second.resolve("ONE")
        time.advance(by: .seconds(120))
        issuer.fail()
        #expect(try await first.resolve("THREE") == "unavailable")
        func ask(_ name: String) async throws -> String {
            async let word = second.resolve(name)
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
        // It reads the store again soon, and finds what the other has fetched meanwhile.
        issuer.respond(try Instance.document([0, 2]))
        time.advance(by: .seconds(60))
        #expect(try await first.resolve("THREE") == "THREE")
        #expect(try await second.resolve("THREE") == "THREE")
        #expect(issuer.fetches == 3)
        // A failure of its own is not reset by another's.
        issuer.fail()
        time.advance(by: .seconds(60))
        #expect(try await second.resolve("FOUR") == "unavailable")
        time.advance(by: .seconds(60))
        #expect(try await first.resolve("FOUR") == "unavailable")
        #expect(try await ask("FOUR") == "unavailable")
        #expect(second.keys.status.failures == 1 && second.keys.status.lastError == "fetch.status")
    }

    @Test func `instances share the cooldown of unknown keys`() async throws {
        let (first, second) = (try instance(), try instance())
        _ = try await first.resolve("ONE")
        _ = try await second.resolve("ONE")
        #expect(try await first.resolve("nobody") == "unknown")
        #expect(issuer.fetches == 2)
        async let word = second.resolve("nobody-else")
        for _ in 0..<11 {
            try await eventually("it waits") { time.sleepers >= 2 || (try? second.lookup("nobody-else")) == "unknown" }
            time.advance(by: .milliseconds(100))
        }
        #expect(try await word == "unknown")
        #expect(issuer.fetches == 2)
        #expect(try second.lookup("ONE") == "ONE")
    }

    @Test func `a rotated key that one instance has fetched is available to all`() async throws {
        let (first, second) = (try instance(), try instance())
        _ = try await first.resolve("ONE")
        _ = try await second.resolve("ONE")
        issuer.respond(try Instance.document([0, 2]))
        #expect(try await first.resolve("THREE") == "THREE")
        #expect(try await second.resolve("THREE") == "THREE")
        #expect(issuer.fetches == 2)
        #expect(second.removed.value.map(\.text) == ["TWO"])
    }
}
