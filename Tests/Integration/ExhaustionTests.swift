import Glibc
import MartletTesting
import Testing

/// What a process may get no more of from the system.
private enum Resource: CaseIterable {
    case descriptors, memory, threads

    /// Less than the memory of a hash, and than the stack of a thread.
    private static let room = 6 << 20

    /// Before the gateway's command. The superuser may have any number of threads, so that another user has it then, for
    /// whom the files of the first are there.
    var launcher: [String] {
        user + (user.isEmpty ? [] : ["--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"])
    }

    /// Before commands of the user who has the gateway.
    private var user: [String] { self == .threads ? ["/usr/bin/setpriv", "--reuid", "65534"] : [] }

    /// Whether what needs no more of it is served.
    var leavesOthers: Bool { self != .descriptors }

    /// The option of `prlimit` and what a process may have when there is to be no more for it.
    private func limit(of gateway: Gateway) throws -> (option: String, value: Int) {
        switch self {
        case .descriptors: ("nofile", 16)
        case .memory: ("as", try gateway.memory("VmSize") + Self.room)
        case .threads: ("nproc", 1)
        }
    }

    /// Runs the body while there is no more of it for a gateway.
    func exhaust<Value>(for gateway: Gateway, _ body: () throws -> Value) throws -> Value {
        let (option, value) = try limit(of: gateway)
        func prlimit(_ options: String...) throws -> String {
            let command = user + [try Executable.named("prlimit"), "--pid", "\(gateway.process.identifier)"] + options
            let result = try run(command[0], Array(command.dropFirst()))
            guard result.ending == .exited(0) else { throw TestFailure("\(result)") }
            return result.output
        }
        let before = try prlimit("--\(option)", "--output", "SOFT", "--noheadings", "--raw").filter { !$0.isWhitespace }
        _ = try prlimit("--\(option)=\(value):")
        let result = try body()
        _ = try prlimit("--\(option)=\(before):")
        return result
    }
}

/// A process that gets no more of something from the system.
@Suite(.serialized, .timeLimit(.minutes(4))) struct `A process that gets no more of a resource` {
    private static let login = Array(#"{"username":"ada","password":"correct horse"}"#.utf8)

    private static func logIn(_ client: HTTPClient) throws -> HTTPMessage {
        try client.exchange("POST", "/auth/login/password", [("Content-Type", "application/json")], body: login)
    }

    /// Runs a test with a user who has not logged in yet: no thread has hashed a password.
    private func withUser(_ launcher: [String], _ body: (Gateway) throws -> Void) throws {
        var config = GatewayConfig(
            endpoints: ["builtin:echo"],
            providers: "password: { kind: password, users: accounts, hash: { memory: 8MiB, iterations: 1 } }",
            server: "workers: 2",
            routes: """
                - { name: open, match: { path: /public/** }, auth: none, upstream: api }
                - { name: closed, match: { path: /** }, auth: { providers: [password] }, upstream: api }
                """)
        config.more = "accounts: { url: \"sqlite:users.db\" }\nsessions: {}\n"
        let gateway = try Gateway(config.text, launcher: launcher)
        do {
            let user = try run(
                Executable.martlet(), ["user", "add", "ada", "--config", gateway.folder.file("config.yaml")],
                input: "correct horse\n")
            #expect(user.ending == .exited(0), "\(user)")
            try body(gateway)
        } catch {
            throw TestFailure("\(error)\n--- the gateway wrote:\n\(gateway.everything.suffix(4000))")
        }
        try gateway.stop()
    }

    /// What four clients get for ten seconds; a connection that cannot be made, or is closed, is 0.
    ///
    /// Two ask a route and two log in, each over the connection that it has, or over a new one for each request.
    private static func load(
        _ gateway: Gateway, connected: Box<Int>, isMissing: Box<Bool>
    ) -> [Background<[Int: Int]>] {
        (0..<4).map { number in
            Background {
                let kept = try gateway.connect()
                _ = try kept.exchange("GET", "/public/a")
                connected.withLock { $0 += 1 }
                try waitUntil("the resource is missing") { isMissing.value }
                let until = Deadline(in: .seconds(10))
                var counts: [Int: Int] = [:]
                while !until.hasPassed {
                    let client = number % 2 == 0 ? kept : try? gateway.connect()
                    let response = number < 2 ? try? client?.exchange("GET", "/public/a") : try? client.map(logIn)
                    counts[response?.status ?? 0, default: 0] += 1
                    pause(.milliseconds(5))
                }
                return counts
            }
        }
    }

    @Test(arguments: Resource.allCases)
    private func `for ten seconds serves what needs none, and everything again afterwards`(
        resource: Resource
    ) throws {
        try withUser(resource.launcher) { gateway in
            let (connected, isMissing) = (Box(0), Box(false))
            let load = Self.load(gateway, connected: connected, isMissing: isMissing)
            try waitUntil("every client has a connection") { connected.value == load.count }
            let counts = try resource.exhaust(for: gateway) {
                isMissing.withLock { $0 = true }
                return try load.map { try $0.value(within: .seconds(60)) }
            }
            #expect(gateway.process.poll() == nil)
            #expect(Array(counts[0].keys) == [200], "a connection that exists: \(counts)")
            if resource.leavesOthers {
                #expect(counts[..<2].allSatisfy { Array($0.keys) == [200] }, "\(counts)")
                #expect(counts[2...].allSatisfy { Set($0.keys).isSubset(of: [429, 503]) }, "\(counts)")
            }
            #expect(counts.allSatisfy { !$0.isEmpty })
            try waitUntil("requests are served again", within: .seconds(10)) {
                try gateway.get("/public/a").status == 200
            }
            try waitUntil("users can log in again", within: .seconds(20)) {
                let session = try Self.logIn(gateway.connect())
                guard session.status == 200 else { return false }
                return try gateway.get("/v1", bearer(session.member("access_token") ?? "")).status == 200
            }
            for path in ["/livez", "/readyz", "/metrics", "/status"] {
                #expect(try gateway.askAdmin(path).status == 200, "\(path)")
            }
        }
    }
}
