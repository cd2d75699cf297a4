import MartletCore
import MartletJOSE
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct IssuerKeysTests {
    @Test func `has no keys until it is queried or started`() async throws {
        let instance = try Instance()
        #expect(try instance.lookup("ONE") == "undecided")
        #expect(instance.issuer.fetches == 0)
        #expect(try await instance.resolve("ONE") == "ONE")
        #expect(try instance.lookup("ONE") == "ONE")
        #expect(try instance.lookup("TWO") == "TWO")
        #expect(instance.issuer.fetches == 1)
    }

    @Test func `has keys once it has started`() async throws {
        let instance = try Instance()
        await instance.keys.start()
        #expect(try instance.lookup("TWO") == "TWO")
        let status = instance.keys.status
        #expect(status.keyIDs.map(\.text) == ["ONE", "TWO"])
        #expect(status.source == .issuer)
        #expect(status.age == .zero)
        #expect(!status.isStale)
        #expect(status.lastError == nil)
        #expect(try #require(status.nextRefresh) <= Instance.ttl)
        await instance.keys.stop()
    }

    @Test func `starts without keys when the issuer fails`() async throws {
        let instance = try Instance()
        instance.issuer.fail()
        await instance.keys.start()
        #expect(try instance.lookup("ONE") == "unavailable")
        #expect(instance.keys.status.source == .none)
        #expect(instance.keys.status.lastError == "fetch.status")
        instance.issuer.respond(try Instance.document([0]))
        try await eventually("asleep") { instance.time.sleepers == 1 }
        instance.time.advance(by: .seconds(5))
        try await eventually("recovered") {
            (try? instance.lookup("ONE")) == "ONE" && instance.keys.status.lastError == nil
        }
        await instance.keys.stop()
    }

    @Test func `concurrent callers share one request`() async throws {
        let instance = try Instance()
        instance.issuer.hold()
        try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<100 { group.addTask { try await instance.resolve(number % 2 == 0 ? "ONE" : "TWO") } }
            try await eventually("asked") { instance.issuer.fetches == 1 }
            instance.issuer.release()
            for try await word in group { #expect(["ONE", "TWO"].contains(word)) }
        }
        #expect(instance.issuer.fetches == 1)
    }

    @Test func `refreshes in the background before the ttl`() async throws {
        let instance = try Instance()
        await instance.keys.start()
        try await eventually("asleep") { instance.time.sleepers == 1 }
        instance.time.advance(by: Instance.ttl * 0.79)
        #expect(instance.time.sleepers == 1)
        #expect(instance.issuer.fetches == 1)
        instance.time.advance(by: Instance.ttl * 0.11)
        try await eventually("refreshed and asleep") {
            instance.issuer.fetches == 2 && instance.time.sleepers == 1 && instance.keys.status.age == .zero
        }
        await instance.keys.stop()
    }

    @Test func `retains old keys while the issuer fails, up to the maximum age`() async throws {
        let instance = try Instance()
        await instance.keys.start()
        instance.issuer.fail()
        for _ in 0..<23 {
            try await eventually("asleep") { instance.time.sleepers == 1 }
            instance.time.advance(by: .seconds(3600))
            #expect(try instance.lookup("ONE") == "ONE")
        }
        #expect(instance.keys.status.isStale)
        #expect(instance.keys.status.source == .issuer)
        #expect(instance.removed.value.isEmpty)
        try await eventually("asleep") { instance.time.sleepers == 1 }
        instance.time.advance(by: .seconds(3600))
        #expect(["unavailable", "undecided"].contains(try instance.lookup("ONE")))
        try await eventually("reported") { instance.removed.value.map(\.text) == ["ONE", "TWO"] }
        // Undecided while the last attempt is in progress.
        try await eventually("given up") { (try? instance.lookup("ONE")) == "unavailable" }
        await instance.keys.stop()
    }

    @Test func `failures are retried with a backoff`() async throws {
        let instance = try Instance()
        instance.issuer.fail()
        await instance.keys.start()
        for _ in 0..<3600 {
            try await eventually("asleep") { instance.time.sleepers == 1 }
            instance.time.advance(by: .seconds(1))
        }
        // At most every 4 seconds once the backoff has grown, about four attempts before that. At least every 9: seconds
        // may pass while an attempt is in progress, up to its timeout.
        #expect(instance.issuer.fetches > 3600 / 9 - 10)
        #expect(instance.issuer.fetches < 3600 / 4 + 10)
        await instance.keys.stop()
    }

    @Test func `requests during a backoff complete immediately`() async throws {
        let instance = try Instance()
        instance.issuer.fail()
        for _ in 0..<1000 { #expect(try await instance.resolve("ONE") == "unavailable") }
        #expect(instance.issuer.fetches == 1)
        instance.time.advance(by: .seconds(1))
        #expect(try instance.lookup("ONE") == "undecided")
        instance.issuer.respond(try Instance.document([0]))
        #expect(try await instance.resolve("ONE") == "ONE")
        #expect(instance.issuer.fetches == 2)
    }

    @Test func `a request without a response times out`() async throws {
        let instance = try Instance()
        instance.issuer.hold()
        async let word = instance.resolve("ONE")
        try await eventually("asked") { instance.issuer.fetches == 1 && instance.time.sleepers == 1 }
        instance.time.advance(by: .seconds(4))
        #expect(try await word == "unavailable")
        #expect(instance.keys.status.lastError == "jwks.timeout")
        instance.issuer.release()
    }

    /// By their defect, as the names of the test cases.
    static let badDocuments = [
        "nothing": "", "no JSON": "<html>", "no keys": "{}", "empty": "{\"keys\":[]}",
        "too large": String(repeating: " ", count: 65_537),
    ]

    @Test(arguments: badDocuments.keys.sorted())
    func `an invalid document is a failed fetch and changes nothing`(fault: String) async throws {
        let instance = try Instance()
        _ = try await instance.resolve("ONE")
        instance.issuer.respond(Array(try #require(Self.badDocuments[fault]).utf8))
        #expect(try await instance.resolve("THREE") == "unavailable")
        #expect(instance.keys.status.lastError == "jwks.bad_document")
        #expect(try instance.lookup("ONE") == "ONE")
        #expect(instance.removed.value.isEmpty)
    }

    @Test func `a rotation is reported, the first keys and keys that are given up are not`() async throws {
        let instance = try Instance()
        await instance.keys.start()
        #expect(instance.rotations.value.isEmpty)
        instance.issuer.respond(try Instance.document([1, 2]))
        #expect(await instance.keys.refreshNow() == nil)
        #expect(instance.rotations.value.map { $0.added.map(\.text) } == [["THREE"]])
        #expect(instance.rotations.value.map { $0.removed.map(\.text) } == [["ONE"]])
        instance.time.advance(by: .seconds(1))
        #expect(await instance.keys.refreshNow() == nil)
        instance.issuer.fail()
        try await eventually("asleep") { instance.time.sleepers == 1 }
        instance.time.advance(by: .seconds(25 * 3600))
        try await eventually("given up") { instance.removed.value.map(\.text) == ["ONE", "THREE", "TWO"] }
        #expect(instance.rotations.value.count == 1)
        await instance.keys.stop()
    }

    @Test func `no refresh begins between stop and the next start`() async throws {
        let instance = try Instance()
        instance.issuer.hold()
        async let word = instance.resolve("ONE")
        try await eventually("asked") { instance.issuer.fetches == 1 }
        await instance.keys.stop()
        #expect(try await word == "unavailable")
        #expect(try await instance.resolve("ONE") == "unavailable")
        #expect(instance.issuer.fetches == 1)
        instance.issuer.release()
        await instance.keys.start()
        #expect(try instance.lookup("ONE") == "ONE")
        #expect(instance.issuer.fetches == 2)
        await instance.keys.stop()
    }

    @Test func `the last user to stop ends the background refresh`() async throws {
        let instance = try Instance()
        await instance.keys.start()
        await instance.keys.start()
        #expect(instance.issuer.fetches == 1)
        await instance.keys.stop()
        #expect(instance.keys.status.nextRefresh != nil)
        #expect(try instance.lookup("THREE") == "undecided")
        await instance.keys.stop()
        #expect(instance.keys.status.nextRefresh == nil)
        #expect(try instance.lookup("THREE") == "unavailable")
    }

    @Test func `steps of the wall clock do not age keys`() async throws {
        let instance = try Instance()
        _ = try await instance.resolve("ONE")
        instance.time.stepWallClock(by: 10 * 86_400)
        #expect(try instance.lookup("ONE") == "ONE")
        instance.time.stepWallClock(by: -20 * 86_400)
        #expect(try instance.lookup("ONE") == "ONE")
        #expect(instance.keys.status.age == .zero)
    }
}
