import MartletCore
import MartletCrypto
import MartletProvider
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct ChangeTests {
    @Test func `changes a password`() async throws {
        let bench = try Bench()
        #expect(await bench.change("alice", from: Bench.alice, to: "battery staple") == nil)
        #expect(await bench.logIn("alice", Bench.alice)?.disposition == .rejected)
        #expect(await bench.logIn("alice", "battery staple") == nil)
    }

    @Test func `rejects a wrong current password, and throttles as a login`() async throws {
        let bench = try Bench()
        for _ in 0..<5 {
            let error = await bench.change("alice", from: "wrong", to: "battery staple")
            #expect(error?.code == "password.wrong_password" && error?.disposition == .rejected)
        }
        #expect(await bench.change("alice", from: Bench.alice, to: "battery staple")?.disposition == .throttled)
        #expect(await bench.logIn("alice", Bench.alice)?.disposition == .throttled)
        #expect(bench.invalidations.value == 0)
    }

    @Test(
        arguments: [
            ("", "password.too_short"), ("1234567", "password.too_short"), ("\u{1F511}\u{1F511}", "password.too_short"),
            // Seven characters once they are composed.
            ("a\u{308}a\u{308}a\u{308}a\u{308}a\u{308}a\u{308}a\u{308}", "password.too_short"),
            (String(repeating: "a", count: 1025), "password.too_long"), ("12345678\0", "password.bad_characters"),
            ("1234567\n", "password.bad_characters"), ("12345678\u{378}", "password.bad_characters"),
        ] as [(String, ErrorCode)])
    func `rejects a new password that is against the rules`(password: String, code: ErrorCode) async throws {
        let bench = try Bench()
        let error = try #require(await bench.change("alice", from: Bench.alice, to: password))
        #expect(error.code == code && error.disposition == .malformed)
        #expect(error.bodyErrors.map(\.pointer) == ["/new_password"])
        await #expect {
            try await bench.provider.makeRecord(name: "bob", password: Secret(password))
        } throws: {
            ($0 as? AuthenticationError)?.code == code
        }
        #expect(bench.store.increments.value.isEmpty)
        #expect(await bench.logIn("alice", Bench.alice) == nil)
    }

    @Test(arguments: [
        "12345678", "\u{5BC6}\u{7801}\u{5BC6}\u{7801}\u{5BC6}\u{7801}\u{5BC6}\u{7801}",
        String(repeating: "a", count: 1024),
        "        ",
    ])
    func `accepts any other new password`(password: String) async throws {
        let bench = try Bench()
        #expect(await bench.change("alice", from: Bench.alice, to: password) == nil)
        #expect(await bench.logIn("alice", password) == nil)
    }

    @Test func `fails for a user without a record`() async throws {
        let bench = try Bench()
        let error = try #require(await bench.change("nobody", from: Bench.alice, to: "battery staple"))
        #expect(error.code == "password.no_record" && error.disposition == .notFound)
        #expect(bench.store.increments.value.isEmpty)
    }

    @Test func `changes nothing for a disabled user`() async throws {
        let bench = try Bench()
        bench.users.setHash(of: "alice", try #require(bench.users["alice"]).hash, isDisabled: true)
        let error = await bench.change("alice", from: Bench.alice, to: "battery staple")
        #expect(error?.disposition == .rejected)
    }

    @Test func `checks again when the hash was replaced meanwhile`() async throws {
        let bench = try Bench()
        let better = try PasswordHash.make(Secret(Bench.alice), with: bench.provider.parameters).encoded
        bench.users.interference.withLock { $0 = { $0.setHash(of: "alice", better) } }
        #expect(await bench.change("alice", from: Bench.alice, to: "battery staple") == nil)
        #expect(await bench.logIn("alice", "battery staple") == nil)
        // A concurrent change wins.
        let other = try PasswordHash.make(Secret("other words"), with: bench.provider.parameters).encoded
        bench.users.interference.withLock { $0 = { $0.setHash(of: "alice", other) } }
        #expect(await bench.change("alice", from: "battery staple", to: "third words")?.disposition == .rejected)
        #expect(bench.users["alice"]?.hash == other)
    }

    @Test func `is unavailable while the users are`() async throws {
        let bench = try Bench()
        bench.users.isReadOnly.withLock { $0 = true }
        let error = await bench.change("alice", from: Bench.alice, to: "battery staple")
        #expect(error?.code == "password.users_unavailable" && error?.disposition == .unavailable)
    }

    @Test func `deletes a record when its identity is unlinked`() async throws {
        let bench = try Bench()
        try await bench.provider.unlink("alice")
        #expect(bench.users["alice"] == nil)
        try await bench.provider.unlink("alice")
        #expect(await bench.logIn("alice", Bench.alice)?.code == "password.unknown_user")
        bench.users.isBroken.withLock { $0 = true }
        await #expect(throws: AuthenticationError.self) { try await bench.provider.unlink("alice") }
    }

    @Test func `makes records by its rules`() async throws {
        let bench = try Bench()
        let record = try await bench.provider.makeRecord(name: "Bob Smith", password: Secret("battery staple"))
        #expect(record.name == "Bob Smith" && record.key == "bob smith" && !record.isDisabled)
        #expect(record.hash.hasPrefix("$argon2id$v=19$m=64,t=1,p=1$"))
        #expect(bench.provider.canonicalName("Bob Smith") == "bob smith")
        #expect(bench.provider.canonicalName("a:b") == nil)
        await #expect {
            try await bench.provider.makeRecord(name: "a:b", password: Secret("battery staple"))
        } throws: {
            ($0 as? AuthenticationError)?.code == "password.bad_name"
        }
    }
}
