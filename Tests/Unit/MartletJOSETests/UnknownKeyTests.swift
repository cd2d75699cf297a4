import MartletCore
import MartletJOSE
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct UnknownKeyTests {
    @Test func `a rotated key is found by the first token that names it`() async throws {
        let instance = try Instance()
        _ = try await instance.settle("ONE")
        instance.issuer.answer(try Instance.document([1, 2]))
        #expect(try instance.lookup("THREE") == "undecided")
        #expect(try await instance.settle("THREE") == "THREE")
        #expect(instance.issuer.fetches == 2)
        #expect(instance.removed.value.map(\.text) == ["ONE"])
        #expect(try instance.lookup("TWO") == "TWO")
    }

    @Test func `another key under an old name is reported`() async throws {
        let instance = try Instance()
        _ = try await instance.settle("ONE")
        instance.issuer.answer(try AppleFixture.document([SigningKey("ONE"), ScriptedIssuer.keys.get()[1]]))
        #expect(try await instance.settle("THREE") == "unknown")
        #expect(instance.removed.value.map(\.text) == ["ONE"])
        #expect(try instance.lookup("ONE") == "ONE")
    }

    @Test func `unknown keys cost one request per cooldown`() async throws {
        let instance = try Instance()
        _ = try await instance.settle("ONE")
        for number in 0..<5000 { #expect(try await instance.settle("random-\(number)") == "unknown") }
        #expect(instance.issuer.fetches == 2)
        instance.time.advance(by: .seconds(59))
        #expect(try instance.lookup("one-more") == "unknown")
        instance.time.advance(by: .seconds(1))
        #expect(try instance.lookup("one-more") == "undecided")
        for number in 5000..<10_000 { #expect(try await instance.settle("random-\(number)") == "unknown") }
        #expect(instance.issuer.fetches == 3)
        #expect(try instance.lookup("ONE") == "ONE")
    }

    @Test func `a key that the issuer does not have is remembered`() async throws {
        let instance = try Instance()
        _ = try await instance.settle("ONE")
        #expect(try await instance.settle("nobody") == "unknown")
        instance.time.advance(by: .seconds(299))
        #expect(try instance.lookup("nobody") == "unknown")
        #expect(try instance.lookup("somebody") == "undecided")
        instance.time.advance(by: .seconds(1))
        #expect(try instance.lookup("nobody") == "undecided")
    }

    @Test func `a key that arrives is used although it was remembered as absent`() async throws {
        let instance = try Instance()
        await instance.keys.start()
        #expect(try await instance.settle("THREE") == "unknown")
        instance.issuer.answer(try Instance.document([0, 1, 2]))
        #expect(try instance.lookup("THREE") == "unknown")
        instance.time.advance(by: .seconds(60))
        _ = try await instance.settle("nobody")
        #expect(try instance.lookup("THREE") == "THREE")
        await instance.keys.stop()
    }

    @Test func `a failing issuer does not make known keys unknown`() async throws {
        let instance = try Instance()
        _ = try await instance.settle("ONE")
        instance.issuer.fail()
        #expect(try await instance.settle("THREE") == "unavailable")
        #expect(try await instance.settle("FOUR") == "unavailable")
        instance.time.advance(by: .seconds(59))
        #expect(try await instance.settle("FIVE") == "unavailable")
        instance.time.advance(by: .seconds(1))
        #expect(try await instance.settle("FIVE") == "unavailable")
        #expect(instance.issuer.fetches == 3)
        #expect(try instance.lookup("TWO") == "TWO")
        // It was not proven absent: the next cooldown asks again.
        instance.issuer.answer(try Instance.document([0, 1, 2]))
        instance.time.advance(by: .seconds(60))
        #expect(try await instance.settle("THREE") == "THREE")
    }

    @Test func `what the issuer was asked about stays unknown while it fails`() async throws {
        let instance = try Instance()
        _ = try await instance.settle("ONE")
        #expect(try await instance.settle("nobody") == "unknown")
        instance.issuer.fail()
        instance.time.advance(by: .seconds(60))
        #expect(try await instance.settle("somebody") == "unavailable")
        #expect(try await instance.settle("nobody") == "unknown")
    }

    @Test func `a refresh that fails for another reason proves nothing absent either`() async throws {
        let instance = try Instance()
        await instance.keys.start()
        instance.issuer.fail()
        instance.issuer.hold()
        instance.time.advance(by: Instance.ttl)
        try await eventually("the refresh is under way") { instance.issuer.fetches == 2 }
        async let word = instance.settle("THREE")
        try await Task.sleep(for: .milliseconds(20))
        instance.issuer.release()
        #expect(try await word == "unavailable")
        // The answer of a refresh that goes well counts for all.
        instance.issuer.answer(try Instance.document([0, 1]))
        #expect(try await instance.settle("FOUR") == "unknown")
        await instance.keys.stop()
        #expect(try instance.lookup("SIX") == "unavailable" && instance.lookup("TWO") == "TWO")
    }

    @Test func `memory does not grow with what clients send`() async throws {
        let instance = try Instance()
        _ = try await instance.settle("ONE")
        for number in 0..<2000 {
            _ = try await instance.settle("k\(number)")
            instance.time.advance(by: .milliseconds(100))
        }
        // 200 s of a flood: one request in each minute that has begun.
        #expect(instance.issuer.fetches == 1 + 4)
    }

    @Test func `an unusable key is told apart and not fetched again`() async throws {
        let key = try ScriptedIssuer.keys.get()[0]
        let members = try key.jwk(["kid": "ENC", "use": "enc"]).map { "\"\($0.key)\":\"\($0.value)\"" }.joined(
            separator: ",")
        let good = try key.jwk().map { "\"\($0.key)\":\"\($0.value)\"" }.joined(separator: ",")
        let instance = try Instance(issuer: ScriptedIssuer(Array("{\"keys\":[{\(members)},{\(good)}]}".utf8)))
        #expect(try await instance.settle("ENC") == "unusable")
        #expect(try instance.lookup("ENC") == "unusable")
        #expect(instance.issuer.fetches == 1)
    }
}
