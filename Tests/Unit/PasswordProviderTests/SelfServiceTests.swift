import MartletConfig
import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct SelfServiceTests {
    @Test(arguments: [
        [], ["register: {}"], ["register: { enabled: false, verify: email }"], ["reset: false"],
        ["reset: { enabled: false }"],
    ])
    func `is off unless it is switched on`(yaml: [String]) throws {
        let service = try Bench(yaml).provider.selfService
        #expect(service.registration == nil && service.reset == nil && service.mailLocation == nil)
    }

    @Test func `has the rules of the configuration`() throws {
        let link = "link: \"https://app.example.com/v?t={token}\""
        let both = try Bench(["register: { enabled: true, require: [name], \(link) }", "reset: true"])
            .provider.selfService
        let registration = try #require(both.registration)
        #expect(registration.verifiesAddress && registration.requiresName)
        #expect(registration.link?.link("x") == "https://app.example.com/v?t=x")
        #expect(both.reset?.link == nil && both.mailLocation?.line == 1)
        let unverified = try Bench(["register: { enabled: true, verify: none }"]).provider.selfService
        #expect(unverified.registration?.verifiesAddress == false && unverified.mailLocation == nil)
        let reset = try Bench(["reset: { \(link) }"]).provider.selfService
        #expect(reset.reset?.link != nil && reset.mailLocation?.line == 1)
    }

    @Test(
        arguments: [
            ("register: true", "config.wrong_type", 11), ("register: { verify: sms }", "config.bad_value", 21),
            ("register: { require: [phone] }", "config.bad_value", 23),
            ("register: { require: name }", "config.wrong_type", 22),
            ("register: { link: \"http://app.example.com/?{token}\" }", "config.bad_url", 19),
            ("register: { enable: true }", "config.unknown_key", 13), ("reset: on", "config.wrong_type", 8),
            ("reset: { link: \"https://app.example.com/\" }", "config.bad_url", 16),
            ("reset: []", "config.wrong_type", 8),
        ] as [(String, ErrorCode, Int)])
    func `is rejected if it is not understood`(yaml: String, code: ErrorCode, column: Int) throws {
        let errors = Bench.diagnostics([yaml]).errors
        let first = try #require(errors.first)
        #expect(errors.count == 1 && first.code == code && first.location.column == column, "\(errors)")
    }

    @Test(arguments: [("", "for ever"), ("reset: true", "until its owner resets the password")])
    func `warns where an address is not proved`(reset: String, end: String) throws {
        let warnings = Bench.diagnostics(["register: { enabled: true, verify: none }"] + [reset].filter { !$0.isEmpty })
            .warnings
        let first = try #require(warnings.first { $0.text.hasPrefix("verify: ") })
        #expect(first.code == "config.insecure" && first.text.contains(end) && first.location.column == 36)
        let safe = Bench.diagnostics(["register: { enabled: true }", "reset: true"]).warnings
        #expect(!safe.contains { $0.text.hasPrefix("verify: ") })
    }

    @Test func `needs users in the account store`() throws {
        let folder = try TemporaryFolder()
        try folder.write("alice:\(HtpasswdTests.bcrypt)\n", to: "users")
        let yaml = ["users: htpasswd:users", "register: { enabled: true }", "reset: true"]
        let errors = Bench.diagnostics(yaml, file: folder.file("config.yaml")).errors
        #expect(
            errors.map(\.code) == ["config.bad_value", "config.bad_value"] && errors.map(\.location.line) == [2, 3])
    }

    @Test func `hashes a new password by the rules`() async throws {
        let bench = try Bench()
        let hash = try await bench.provider.hashNewPassword(
            Secret("battery staple"), member: "password", in: bench.context())
        #expect(try PasswordHash(hash).matches(Secret("battery staple")))
        await #expect {
            try await bench.provider.hashNewPassword(Secret("short"), member: "password", in: bench.context())
        } throws: {
            ($0 as? AuthenticationError)?.bodyErrors.map(\.pointer) == ["/password"]
        }
    }

    @Test func `ends a ban when the password was reset`() async throws {
        let bench = try Bench()
        for _ in 0..<5 { await bench.logIn("alice", "wrong horse") }
        #expect(await bench.logIn("alice", Bench.alice)?.disposition == .throttled)
        await bench.provider.passwordWasReset(of: "alice", in: bench.context())
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        // From a network that the user has logged in from, too.
        for _ in 0..<5 { await bench.logIn("alice", "wrong horse") }
        #expect(await bench.logIn("alice", Bench.alice)?.disposition == .throttled)
        await bench.provider.passwordWasReset(of: "alice", in: bench.context())
        #expect(await bench.logIn("alice", Bench.alice) == nil)
    }

    @Test func `delivers the claims of a registration, and keeps the name`() async throws {
        let bench = try Bench()
        let hash = try #require(bench.users["alice"]).hash
        let claims: JSONObject = ["name": "Ada", "email": "ada@example.com", "email_verified": true]
        bench.users.add(
            UserRecord(name: "ada@example.com", key: "ada@example.com", hash: hash, isDisabled: false, claims: claims))
        let form = SignInForm(
            texts: ["username": Secret("Ada@example.com"), "password": Secret(Bench.alice)], others: [:], isForm: true)
        let signIn = try await bench.provider.signIn(with: form, in: bench.context())
        #expect(signIn.storedClaims == ["name": "Ada"])
        var expected = claims
        expected["preferred_username"] = "ada@example.com"
        #expect(signIn.identity.claims == expected)
    }
}
