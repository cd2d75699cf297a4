import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct LoginTests {
    @Test(arguments: ["alice", "Alice", "ALICE", "\u{FF21}lice"])
    func `authenticates a user under every spelling of the name`(name: String) async throws {
        let bench = try Bench()
        let identity = try await bench.outcome(name, Bench.alice).get()
        #expect(identity.providerSubject == "alice")
        #expect(identity.issuer == "password")
        #expect(identity.claims["preferred_username"]?.string == "Alice")
        #expect(identity.authTime == bench.time.clock.unixTime && identity.issuedAt == identity.authTime)
        #expect(identity.expiresAt == identity.issuedAt.advanced(bySeconds: 10))
    }

    /// The same rejection for clients, whatever the cause.
    static let rejections: [(name: String, password: String, code: ErrorCode)] = [
        ("alice", "wrong horse", "password.wrong_password"), ("alice", "Correct horse", "password.wrong_password"),
        ("alice", " correct horse", "password.wrong_password"), ("alice", "correct horse ", "password.wrong_password"),
        ("alice", "", "password.unusable_password"), ("alice", "correct horse\0", "password.unusable_password"),
        ("alice", "correct\thorse", "password.unusable_password"),
        ("alice", String(repeating: "a", count: 1025), "password.unusable_password"),
        ("alice", String(repeating: "a", count: 60_000), "password.unusable_password"),
        ("alice", String(repeating: "a", count: 1024), "password.wrong_password"),
        ("nobody", "correct horse", "password.unknown_user"), ("", "correct horse", "password.unknown_user"),
        ("alice:", "correct horse", "password.unknown_user"), ("alice\0", "correct horse", "password.unknown_user"),
        ("al ice", "correct horse", "password.unknown_user"),
        ("al\u{200B}ice", "correct horse", "password.unknown_user"),
        (String(repeating: "a", count: 256), "correct horse", "password.unknown_user"),
        (String(repeating: "a", count: 60_000), "correct horse", "password.unknown_user"),
        ("disabled", "correct horse", "password.disabled"), ("star", "*", "password.unusable_hash"),
        ("star", "correct horse", "password.unusable_hash"), ("bang", "!", "password.unusable_hash"),
        ("empty", "", "password.unusable_hash"), ("plain", "plain", "password.unusable_hash"),
        ("md5", "password", "password.unusable_hash"), ("signed", "x", "password.unusable_hash"),
    ]

    private static func addOddUsers(to bench: Bench) throws {
        let hash = try #require(bench.users["alice"]).hash
        bench.users.setHash(of: "disabled", hash, isDisabled: true)
        for (name, hash) in [
            ("star", "*"), ("bang", "!"), ("empty", ""), ("plain", "plain"),
            ("md5", "$1$somesalt$W.KCTbPSiFDGffAGOjcBc."),
            ("signed", "$2x$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2"),
        ] { bench.users.setHash(of: name, hash) }
    }

    @Test(arguments: rejections)
    func `rejects everything else in the same way`(name: String, password: String, code: ErrorCode) async throws {
        let bench = try Bench()
        try Self.addOddUsers(to: bench)
        let error = try #require(await bench.logIn(name, password))
        #expect(error.code == code)
        #expect(error.disposition == .rejected && error.retryAfter == nil)
        // Each counts as an attempt and as a failure of the user and of the address.
        #expect(bench.store.increments.value.count == 3)
        #expect(!bench.log.text.contains("horse"))
    }

    @Test func `rejects bytes that are not UTF-8`() async throws {
        let bench = try Bench()
        for (name, password) in [([0xFF], Array(Bench.alice.utf8)), (Array("alice".utf8), [0xFF])]
            as [([UInt8], [UInt8])]
        {
            let form = SignInForm(
                texts: ["username": Secret(name), "password": Secret(password)], others: [:], isForm: true)
            await #expect(throws: AuthenticationError.self) {
                _ = try await bench.provider.signIn(with: form, in: bench.context())
            }
        }
    }

    @Test func `requires both members, as strings`() async throws {
        let bench = try Bench()
        let (name, password) = (Secret("alice"), Secret(Bench.alice))
        let forms: [(SignInForm, ErrorCode)] = [
            (SignInForm(texts: [:], others: [:], isForm: false), "signin.missing_member"),
            (SignInForm(texts: ["username": name], others: [:], isForm: false), "signin.missing_member"),
            (SignInForm(texts: ["password": password], others: [:], isForm: false), "signin.missing_member"),
            (
                SignInForm(
                    texts: ["username": name], others: ["password": .array([.string(Bench.alice)])], isForm: false),
                "signin.bad_member"
            ),
            (
                SignInForm(texts: ["username": name], others: ["password": .object(["$ne": .null])], isForm: false),
                "signin.bad_member"
            ),
            (
                SignInForm(texts: ["username": name], others: ["password": .integer(1)], isForm: false),
                "signin.bad_member"
            ),
            (
                SignInForm(texts: ["password": password], others: ["username": .bool(true)], isForm: false),
                "signin.bad_member"
            ),
        ]
        for (form, code) in forms {
            await #expect {
                try await bench.provider.signIn(with: form, in: bench.context())
            } throws: {
                let error = $0 as? AuthenticationError
                return error?.code == code && error?.disposition == .malformed
            }
        }
        #expect(bench.store.increments.value.isEmpty)
    }

    @Test func `accepts a password as other keyboards compose it`() async throws {
        let bench = try Bench()
        let record = try await bench.provider.makeRecord(name: "jos\u{E9}", password: Secret("contrase\u{F1}a mia"))
        bench.users.add(record)
        #expect(await bench.logIn("jose\u{301}", "contrasen\u{303}a\u{A0}mia") == nil)
        #expect(await bench.logIn("JOS\u{C9}", "contrase\u{F1}a mia") == nil)
        // Compatibility forms are other passwords.
        #expect(await bench.logIn("jos\u{E9}", "contrase\u{F1}\u{FF41} mia")?.code == "password.wrong_password")
    }

    @Test func `accepts a hash of a password that was not composed, and rehashes it`() async throws {
        let bench = try Bench()
        // bcrypt of "pa", U+0308, "ssword", made by a tool that does not compose.
        bench.users.setHash(of: "old", "$2y$05$abcdefghijklmnopqrstuuJe2Br3m6bB0ywR3Dbt4pGV38yRP866S")
        #expect(await bench.logIn("old", "p\u{E4}ssword")?.code == "password.wrong_password")
        #expect(await bench.logIn("old", "pa\u{308}ssword") == nil)
        #expect(await bench.logIn("old", "p\u{E4}ssword") == nil)
    }

    // MARK: - Rehashing

    @Test func `replaces an old hash at login`() async throws {
        let bench = try Bench()
        let old = "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2"
        bench.users.setHash(of: "old", old)
        #expect(await bench.logIn("old", "wrong horse") != nil)
        #expect(bench.users["old"]?.hash == old)
        #expect(await bench.logIn("old", "correct horse") == nil)
        let new = try #require(bench.users["old"]).hash
        #expect(new.hasPrefix("$argon2id$v=19$m=64,t=1,p=1$"))
        #expect(await bench.logIn("old", "correct horse") == nil)
        #expect(bench.users["old"]?.hash == new)
    }

    @Test func `keeps a hash that is strong enough`() async throws {
        let bench = try Bench()
        let better = try Argon2Parameters(memory: 128, iterations: 2, parallelism: 1)
        let hash = try PasswordHash.make(Secret("correct horse"), with: better).encoded
        bench.users.setHash(of: "old", hash)
        #expect(await bench.logIn("old", "correct horse") == nil)
        #expect(bench.users["old"]?.hash == hash)
    }

    @Test func `lets a change of password win over a rehash`() async throws {
        let bench = try Bench()
        bench.users.setHash(of: "old", "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2")
        bench.users.interference.withLock { $0 = { $0.setHash(of: "old", "changed") } }
        #expect(await bench.logIn("old", "correct horse") == nil)
        #expect(bench.users["old"]?.hash == "changed")
    }

    @Test func `authenticates a user whose hash cannot be replaced`() async throws {
        let bench = try Bench()
        bench.users.setHash(of: "old", "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2")
        bench.users.isReadOnly.withLock { $0 = true }
        #expect(await bench.logIn("old", "correct horse") == nil)
        #expect(bench.log.lines.contains { $0.event == "rehashing a password failed" })
    }

    @Test func `never accepts a password that bcrypt would truncate`() async throws {
        let bench = try Bench()
        bench.users.setHash(of: "old", "$2y$05$abcdefghijklmnopqrstuuGUnCqbfgs3htOkLrFduUjAyLBw1Rq/u")
        #expect(await bench.logIn("old", String(repeating: "a", count: 73))?.code == "password.wrong_password")
        #expect(await bench.logIn("old", String(repeating: "a", count: 72)) == nil)
    }

    // MARK: - Outages

    @Test func `is unavailable while the store is`() async throws {
        let bench = try Bench()
        bench.store.isBroken.withLock { $0 = true }
        for password in [Bench.alice, "wrong"] {
            let error = try #require(await bench.logIn("alice", password))
            #expect(error.code == "password.store_unavailable" && error.disposition == .unavailable)
        }
    }

    @Test func `is unavailable while the users are`() async throws {
        let bench = try Bench()
        bench.users.isBroken.withLock { $0 = true }
        let error = try #require(await bench.logIn("alice", Bench.alice))
        #expect(error.code == "password.users_unavailable" && error.disposition == .unavailable)
    }

    @Test func `is unavailable when the hashing queue is full`() async throws {
        let bench = try Bench(queue: 0)
        let error = try #require(await bench.logIn("alice", Bench.alice))
        #expect(error.code == "password.overloaded" && error.disposition == .unavailable)
        #expect(error.retryAfter == .seconds(1))
        #expect(bench.store.keys.value.isEmpty, "the store was not queried")
    }

    @Test func `leaves the store to others, whatever one network sends`() async throws {
        let bench = try Bench(queue: 4096)
        let gate = Gate()
        bench.store.hold.withLock { $0 = { await gate.pass() } }
        let (rejected, others) = (Box(0), Box(0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { gate.open() }
            for number in 0..<1000 {
                group.addTask {
                    let error = await bench.basic(Base64.encode(Array("nobody\(number):x".utf8), padding: .required))
                        .failure
                    if error?.code == "password.overloaded" { rejected.withLock { $0 += 1 } }
                }
            }
            // A quarter of those that wait are of one address.
            try await eventually("the others wait") { rejected.value == 1000 - 256 - 512 }
            group.addTask {
                let error = await bench.logIn("alice", Bench.alice, from: Bench.elsewhere)
                others.withLock { $0 = error == nil ? 1 : -1 }
            }
            try await eventually("another one waits") { bench.provider.attemptSlots.waiting == 512 + 1 }
        }
        #expect(gate.highest == 256 && rejected.value == 1000 - 256 - 512 && others.value == 1)
    }

    @Test func `leaves capacity for hashing to other networks`() async throws {
        let bench = try Bench(queue: 4, bound: .verificationThreads)
        let gate = Gate()
        for _ in 0..<2 {
            bench.pool.submit(until: .never) { _ in gate.block() }
            while bench.pool.waiting > 0 { await Task.yield() }
        }
        let rejected = Box(0)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<6 {
                group.addTask {
                    let code = await bench.logIn("nobody \(number)", "wrong", from: Bench.home)?.code
                    if code == "password.overloaded" { rejected.withLock { $0 += 1 } }
                }
            }
            while rejected.value < 4 || bench.pool.waiting < 2 { await Task.yield() }
            group.addTask { #expect(await bench.logIn("alice", Bench.alice, from: Bench.elsewhere) == nil) }
            while bench.pool.waiting < 3 { await Task.yield() }
            gate.open()
        }
        #expect(rejected.value == 4)
    }

    @Test func `does not start a hash after its deadline`() async throws {
        let bench = try Bench()
        let form = SignInForm(texts: ["username": Secret("alice"), "password": Secret("x")], others: [:], isForm: true)
        let late = AuthenticationContext(now: UnixTime(seconds: 0), deadline: MonotonicTime(nanoseconds: 0))
        await #expect {
            try await bench.provider.signIn(with: form, in: late)
        } throws: {
            ($0 as? AuthenticationError)?.code == "password.overloaded"
        }
    }
}
