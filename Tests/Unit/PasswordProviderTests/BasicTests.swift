import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct BasicTests {
    @Test(arguments: [([], true), (["basic: true"], true), (["basic: false"], false)] as [([String], Bool)])
    func `is claimed unless the block says otherwise`(yaml: [String], isClaimed: Bool) throws {
        #expect(try Bench(yaml).provider.accepts == (isClaimed ? [.basic] : []))
    }

    // RFC 7617 §2 and §2.1, and the corners of the syntax.
    @Test(arguments: [
        ("QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"), ("dGVzdDoxMjPCow==", "test", "123\u{A3}"),
        ("dXNlcjphOmI=", "user", "a:b"), ("dXNlcjo=", "user", ""), ("Og==", "", ""), ("Ong=", "", "x"),
    ])
    func `splits name and password at the first colon`(token: String, name: String, password: String) throws {
        let basic = try #require(BasicCredential(Array(token.utf8)))
        #expect(basic.name == Array(name.utf8))
        #expect(basic.password.withBytes { $0 == Array(password.utf8) })
    }

    @Test(arguments: [
        "", "=", "====", "YWxpY2U=", "YWxpY2U6eA", "YWxpY2U6eA=", "YWxpY2U6eB==", "YWxpY2U6eA===", " YWxpY2U6eA==",
        "YWxpY2U6eA== ", "YWxp Y2U6eA==", "YWxpY2U6eA==YQ==", "YWxpY2U6_w==", "YWxpY2U6-w==", "YWxpY2U6eA==,x",
        "alice:x",
        "YWxpY2U6/w==", "YWxpY2U6AA==", "YQo6eA==", "YTp4fw==", "YTrChQ==", "YTrAgA==",
    ])
    func `rejects every other spelling as a wrong credential`(token: String) async throws {
        #expect(BasicCredential(Array(token.utf8)) == nil)
        let bench = try Bench()
        let error = try #require(await bench.basic(token).failure)
        #expect(error.code == "password.malformed_basic" && error.disposition == .rejected)
        #expect(bench.store.increments.value.isEmpty)
    }

    @Test func `rejects a token that is longer than any name and password`() {
        let token = Base64.encode([0x3A] + [UInt8](repeating: 0x61, count: 6200), padding: .required)
        #expect(BasicCredential(Array(token.utf8)) == nil)
    }

    private static func token(_ text: String) -> String { Base64.encode(Array(text.utf8), padding: .required) }

    @Test func `authenticates a user for a short time`() async throws {
        let bench = try Bench()
        let identity = try await bench.basic(Self.token("Alice:\(Bench.alice)")).get()
        #expect(identity.providerSubject == "alice")
        #expect(identity.expiresAt.seconds - bench.time.clock.unixTime.seconds == 10)
        #expect(bench.provider.accepts == [.basic])
    }

    @Test(
        arguments: [
            ("alice:", "password.unusable_password"), (":", "password.unknown_user"), (":x", "password.unknown_user"),
            ("alice:wrong", "password.wrong_password"), ("bob:x", "password.unknown_user"),
        ] as [(String, ErrorCode)])
    func `rejects a wrong pair as a login`(pair: String, code: ErrorCode) async throws {
        let bench = try Bench()
        let error = try #require(await bench.basic(Self.token(pair)).failure)
        #expect(error.code == code && error.disposition == .rejected)
    }

    @Test func `throttles as a login, and with it`() async throws {
        let bench = try Bench()
        for _ in 0..<3 { _ = await bench.basic(Self.token("alice:wrong")) }
        for _ in 0..<2 { await bench.logIn("alice", "wrong") }
        #expect(await bench.basic(Self.token("alice:\(Bench.alice)")).failure?.disposition == .throttled)
        #expect(await bench.logIn("alice", Bench.alice)?.disposition == .throttled)
    }

    @Test func `rejects a bearer token`() async throws {
        let bench = try Bench()
        let credential = Credential(bearer: Array(Self.token("alice:\(Bench.alice)").utf8))
        await #expect(throws: AuthenticationError.self) {
            _ = try await bench.provider.authenticate(credential, in: bench.context())
        }
    }

    @Test func `counts many concurrent requests of a client as few attempts`() async throws {
        let bench = try Bench()
        let token = Self.token("alice:\(Bench.alice)")
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<200 { group.addTask { await bench.basic(token).success != nil } }
            var outcomes: [Bool] = []
            for await outcome in group { outcomes.append(outcome) }
            return outcomes
        }
        #expect(outcomes.count == 200 && outcomes.allSatisfy { $0 })
    }

    @Test func `shares no result with callers after a change`() async throws {
        let singleFlight = SingleFlight<Int>()
        let result = try await singleFlight.join([1]) { () async throws(AuthenticationError) -> Int in
            singleFlight.startNewEpoch()
            return try await singleFlight.join([1]) { 2 } * 10
        }
        #expect(result == 20)
    }

    @Test func `shares a result only while it is being computed`() async throws {
        let singleFlight = SingleFlight<Int>()
        let first = try await singleFlight.join([1]) { 1 }
        let second = try await singleFlight.join([1]) { 2 }
        #expect(first == 1 && second == 2)
        await #expect(throws: AuthenticationError.self) {
            _ = try await singleFlight.join([1]) { () async throws(AuthenticationError) -> Int in
                throw .rejected("test.no")
            }
        }
        #expect(try await singleFlight.join([1]) { 3 } == 3)
    }
}
