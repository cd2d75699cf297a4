import MartletCore
import MartletJOSE
import MartletTesting
import Testing

/// What an operator sees of an issuer, or of the store of its keys, that is unavailable for long.
@Suite(.timeLimit(.minutes(1))) struct KeyOutageTests {
    private static let timedOut = "warning issuer keys refresh failed code=fetch.timeout reason=no"
    private static let status = "warning issuer keys refresh failed code=fetch.status reason=no"

    /// Lets time pass, but none during an attempt, which would time out.
    private func pass(_ seconds: Int, _ instance: Instance) async throws {
        func waitUntilAsleep() async throws {
            // Not the timeout of an attempt that has just ended, which still sleeps then: time that passed before the
            // refresh sleeps would make it late.
            try await eventually("asleep") {
                guard instance.time.sleepers == 1, let wake = instance.time.nextWake else { return false }
                return wake > .zero && instance.keys.status.nextRefresh == wake
            }
        }
        for _ in 0..<seconds {
            try await waitUntilAsleep()
            instance.time.advance(by: .seconds(1))
        }
        try await waitUntilAsleep()
    }

    @Test func `an issuer that fails for twenty-five minutes is in the log once for each reason and ten minutes`()
        async throws
    {
        let instance = try Instance()
        instance.issuer.fail("fetch.timeout")
        await instance.keys.start()
        try await pass(300, instance)
        #expect(instance.outages == [Self.timedOut])
        instance.issuer.fail("fetch.status")
        try await pass(1200, instance)
        let fetches = instance.issuer.fetches
        instance.issuer.respond(try Instance.document([0]))
        try await pass(10, instance)
        await instance.keys.stop()
        let lines = instance.outages
        let counts = lines.compactMap { $0.split(separator: " unlogged=").dropFirst().first.flatMap { Int($0) } }
        #expect(fetches > 100 && counts.count == lines.count - 2 && counts.allSatisfy { $0 > 10 })
        #expect(
            lines.map { String($0.split(separator: " unlogged=")[0].split(separator: " seconds=")[0]) }
                == [Self.timedOut, Self.status, Self.status, "info issuer keys refresh recovered"])
    }

    @Test func `a store that fails is in the log once for each kind of call`() async throws {
        let time = VirtualTime()
        let store = StoreInMemory(clock: time.clock)
        let instance = try Instance(time: time, store: store)
        _ = try await instance.resolve("ONE")
        #expect(instance.outages.isEmpty)
        store.isBroken = true
        for name in ["A", "B", "C"] {
            time.advance(by: .seconds(60))
            #expect(try await instance.resolve(name) == "unknown")
        }
        let reason = "code=store.unavailable reason=the store is broken"
        let failures = [
            "warning stored issuer keys not read \(reason)", "warning issuer keys lease not claimed \(reason)",
            "warning issuer keys not stored \(reason)",
        ]
        #expect(instance.outages == failures)
        store.isBroken = false
        time.advance(by: .seconds(60))
        #expect(try await instance.resolve("D") == "unknown")
        #expect(
            instance.outages.dropFirst(3) == [
                "info stored issuer keys read again seconds=180", "info issuer keys lease claimed again seconds=180",
                "info issuer keys stored again seconds=180",
            ])
    }
}
