import Foundation
import MartletConfig
import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct ConfigurationTests {
    /// An invalid block, the code, and the reported line and column.
    static let bad: [(yaml: [String], code: ErrorCode, position: String)] = [
        (["users: \"htpasswd:\""], "config.bad_value", "1:8"), (["users: file:x"], "config.bad_value", "1:8"),
        (["users: Accounts"], "config.bad_value", "1:8"), (["users: [accounts]"], "config.wrong_type", "1:8"),
        (["users: htpasswd:/nonexistent/users"], "config.file_unreadable", "1:8"),
        (["user: accounts"], "config.unknown_key", "1:1"),
        (["hash: { algorithm: bcrypt }"], "config.bad_value", "1:20"),
        (["hash: { memory: 257MiB }"], "config.bad_size", "1:17"),
        (["hash: { memory: 7KiB }"], "config.bad_size", "1:17"),
        (["hash: { memory: 20000B }"], "config.bad_size", "1:17"),
        (["hash: { memory: 19 }"], "config.bad_size", "1:17"),
        (["hash: { memory: 64KiB, parallelism: 9 }"], "config.bad_size", "1:17"),
        (["hash: { iterations: 17 }"], "config.bad_value", "1:21"),
        (["hash: { iterations: 0 }"], "config.bad_value", "1:21"),
        (["hash: { parallelism: 17 }"], "config.bad_value", "1:22"),
        (["hash: { cost: 12 }"], "config.unknown_key", "1:9"),
        (["hash: argon2id"], "config.wrong_type", "1:7"), (["throttle: { attempts: 0 }"], "config.bad_value", "1:23"),
        (["throttle: { window: 0s }"], "config.bad_duration", "1:21"),
        (["throttle: { ban: 31d }"], "config.bad_duration", "1:18"),
        (["throttle: { per_address: { attempts: 0 } }"], "config.bad_value", "1:38"),
        (["throttle: { per_address: 100 }"], "config.wrong_type", "1:26"),
        (["throttle: { per_adress: {} }"], "config.unknown_key", "1:13"),
        (["throttle: off"], "config.wrong_type", "1:11"),
        (["min_length: 0"], "config.bad_value", "1:13"), (["min_length: 257"], "config.bad_value", "1:13"),
        (["min_length: eight"], "config.wrong_type", "1:13"), (["basic: sometimes"], "config.wrong_type", "1:8"),
    ]

    @Test(arguments: bad)
    func `rejects a block that is not understood`(yaml: [String], code: ErrorCode, position: String) throws {
        let errors = Bench.diagnostics(yaml).errors
        let first = try #require(errors.first)
        #expect(errors.count == 1 && first.code == code, "\(errors)")
        #expect("\(first.location.line):\(first.location.column)" == position)
    }

    @Test(arguments: [
        ["hash: { memory: 16MiB }"], ["hash: { iterations: 1 }"], ["min_length: 7"], ["throttle: { attempts: 101 }"],
    ])
    func `warns about weak settings`(yaml: [String]) {
        let found = Bench.diagnostics(yaml)
        #expect(!found.hasErrors && found.warnings.map(\.code) == ["config.insecure"])
    }

    @Test(arguments: [
        ["users: accounts"], ["hash: { algorithm: argon2id, memory: 19MiB, iterations: 2, parallelism: 1 }"],
        ["throttle: { attempts: 5, window: 2m, ban: 5m, per_address: { attempts: 100, window: 2m } }"],
        ["min_length: 15"],
        ["hash: { memory: 256MiB, iterations: 16, parallelism: 16 }"],
    ])
    func `accepts what is written in the guide`(yaml: [String]) {
        #expect(Bench.diagnostics(yaml).isEmpty)
    }

    @Test func `has defaults for everything`() throws {
        var diagnostics = Diagnostics()
        let node = try #require(
            ConfigurationNode.parse(Array("{}".utf8), file: "c.yaml", environment: { _ in nil }, into: &diagnostics))
        let block = try #require(node.decode(PasswordConfiguration.self, title: "p", into: &diagnostics))
        #expect(block.hash.parameters.memory == 19_456 && block.hash.parameters.iterations == 2)
        #expect(block.throttle.attempts == 5 && block.throttle.window == .seconds(120))
        #expect(block.throttle.ban == .seconds(300) && block.minimumLength.value == 8)
        #expect(block.throttle.address.attempts == 100 && block.throttle.address.window == .seconds(120))
        #expect(diagnostics.isEmpty)
    }

    @Test func `requires accounts if the users are there`() {
        let context = ProviderContext.detached("password", clock: .system, hasUsers: false)
        for (yaml, column) in [(["users: accounts"], 8), (["min_length: 9"], 1)] {
            guard case .failure(let rejected) = Bench.provider(yaml, file: "config.yaml", context: context) else {
                Issue.record("built without accounts")
                continue
            }
            #expect(rejected.diagnostics.errors.map(\.code) == ["config.missing_key"])
            #expect(rejected.diagnostics.errors.first?.location.column == column)
        }
    }

    @Test func `finds a users file beside the configuration, and reports its lines`() throws {
        let folder = try TemporaryFolder()
        try folder.write("alice:\(HtpasswdTests.bcrypt)\nbob:\(HtpasswdTests.bcrypt)\n", to: "users")
        let yaml = ["users: htpasswd:users"]
        let found = Bench.diagnostics(yaml, file: folder.file("config.yaml"))
        #expect(!found.hasErrors)
        #expect(
            found.warnings.first?.text.contains("2 bcrypt hashes with a cost below 10, the first in line 1") == true)
        try folder.write("alice:x\n\nbob\n", to: "users")
        let errors = Bench.diagnostics(yaml, file: folder.file("config.yaml")).errors
        #expect(errors.map(\.code) == ["config.bad_value", "config.bad_value"])
        #expect(errors.first?.text.contains("line 1: ") == true && errors.last?.text.contains("line 3: ") == true)
    }

    // MARK: - A provider with a file

    @Test func `authenticates users in a file by their exact names`() async throws {
        let folder = try TemporaryFolder()
        let text = "Alice:\(HtpasswdTests.bcrypt)\nbob:\(HtpasswdTests.bcrypt)\n"
        let path = try folder.write(text, to: "users")
        let bench = try Bench(["users: htpasswd:users"], file: folder.file("config.yaml"))
        let identity = try await bench.outcome("Alice", "correct horse").get()
        #expect(identity.providerSubject == "Alice")
        #expect(identity.claims["preferred_username"]?.string == "Alice")
        for name in ["alice", "ALICE", "nobody"] {
            #expect(await bench.logIn(name, "correct horse")?.code == "password.unknown_user")
        }
        // Two of these have the canonical name of an existing user.
        #expect(await bench.logIn("aLICE", "x")?.disposition == .rejected)
        #expect(await bench.logIn("alicE", "x")?.disposition == .rejected)
        #expect(await bench.logIn("AlicE", "x")?.disposition == .rejected)
        #expect(await bench.logIn("Alice", "correct horse")?.disposition == .throttled)
        // Nothing is ever written.
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        #expect(await bench.change("Alice", from: "correct horse", to: "battery staple")?.disposition == .notFound)
        try await bench.provider.unlink("Alice")
        await #expect(throws: AuthenticationError.self) {
            try await bench.provider.makeRecord(name: "carol", password: Secret("battery staple"))
        }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
    }

    @Test func `reports the state of the file`() throws {
        let folder = try TemporaryFolder()
        try folder.write("alice:\(HtpasswdTests.bcrypt)\n", to: "users")
        let bench = try Bench(["users: htpasswd:users"], file: folder.file("config.yaml"))
        #expect(bench.provider.health.state == .ready && bench.provider.health.gauges.first?.value == 1)
        try folder.write("alice\n", to: "users")
        guard case .file(let file) = bench.provider.source else { throw TestFailure("no file") }
        _ = file.refresh(now: bench.time.clock.unixTime)
        #expect(bench.provider.health.state == .degraded)
        #expect(bench.provider.health.detail.contains("line 1: missing colon"))
        #expect(try Bench().provider.health.state == .ready)
    }
}
