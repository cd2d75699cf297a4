import Foundation
import MartletJSON
import MartletTesting
import Testing

/// `martlet check --online`: says of everything that the gateway needs whether it can be used.
@Suite(.timeLimit(.minutes(3))) struct `Online check` {
    private static func check(
        _ more: String, providers: String = "", files: [String: String] = [:], arguments: [String] = []
    ) throws -> CommandResult {
        let folder = try TemporaryFolder()
        for (name, text) in files { try folder.write(text, to: name) }
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url], providers: providers)
        config.more = more
        let path = try folder.write(config.text, to: "config.yaml")
        return try run(try Executable.martlet(), ["check", "--online", "--config", path] + arguments)
    }

    private static func store(_ url: String) -> String { "store: { url: \"\(url)\" }\n" }

    private static let needed = [
        "SET", "GET", "PTTL", "EXISTS", "INCR", "DECR", "PEXPIRE", "PEXPIREAT", "HSET", "HGET", "HMGET", "HGETALL",
        "HDEL", "ZADD", "ZRANGE", "ZREM", "EVALSHA", "EVAL", "GETDEL", "DEL", "PUBLISH", "SUBSCRIBE", "ROLE",
        "WAIT",
    ]

    @Test func `a Redis user with every right, and none of them left behind`() throws {
        let redis = try RedisServer()
        let rights = (Self.needed + ["PING"]).map { "+\($0.lowercased())" }.joined(separator: " ")
        _ = try redis.command("ACL SETUSER gw on >pw ~martlet:* &martlet:revoked \(rights)")
        let result = try Self.check(Self.store("redis://gw:pw@127.0.0.1:\(redis.port)"))
        #expect(result.ending == .exited(0) && result.output.contains("store: ok"), "\(result)")
        #expect(try redis.command("DBSIZE").hasPrefix(":0"))
    }

    @Test(arguments: needed) func `the right that a Redis user lacks is named`(_ right: String) throws {
        let redis = try RedisServer()
        _ = try redis.command("ACL SETUSER gw on >pw ~martlet:* &martlet:revoked +@all -\(right.lowercased())")
        let result = try Self.check(Self.store("redis://gw:pw@127.0.0.1:\(redis.port)"))
        #expect(result.ending == .exited(69), "\(result)")
        let lines = result.output.split(separator: "\n").filter { $0.contains("redis.not_permitted") }
        #expect(lines.count == 1 && lines[0].contains("not permitted to run \(right):"), "\(result)")
        let isAboutKeys = !["ROLE", "WAIT"].contains(right)
        #expect(lines.first?.contains("+\(right.lowercased())\(isAboutKeys ? " and " : "")") == true, "\(result)")
    }

    @Test func `a master of a cluster that is unavailable is named`() throws {
        let cluster = try RedisClusterServers(extra: ["--cluster-require-full-coverage", "no"])
        let whole = try Self.check(Self.store(cluster.url))
        #expect(whole.ending == .exited(0) && whole.output.contains("store: ok"), "\(whole)")
        try cluster.servers[2].stop()
        let result = try Self.check(Self.store(cluster.url))
        #expect(result.ending == .exited(69), "\(result)")
        #expect(
            result.output.contains("master 127.0.0.1:\(cluster.servers[2].port) is unavailable"), "\(result)")
    }

    @Test func `a Redis user without the channel, or without the keys`() throws {
        let redis = try RedisServer()
        let url = "redis://gw:pw@127.0.0.1:\(redis.port)"
        _ = try redis.command("ACL SETUSER gw on >pw ~martlet:* resetchannels +@all")
        let channel = try Self.check(Self.store(url))
        #expect(channel.ending == .exited(69), "\(channel)")
        for part in ["PUBLISH", "SUBSCRIBE", "&martlet:revoked"] {
            #expect(channel.output.contains(part), "\(channel)")
        }
        _ = try redis.command("ACL SETUSER gw resetkeys ~other:* allchannels")
        let keys = try Self.check(Self.store(url))
        #expect(
            keys.ending == .exited(69)
                && keys.output.contains("is not permitted to run SET: it needs +set and ~martlet:*"))
        let password = try Self.check(Self.store("redis://gw:no@127.0.0.1:\(redis.port)"))
        #expect(password.ending == .exited(69) && password.output.contains("redis.wrong_password"), "\(password)")
        try redis.stop()
        #expect(try Self.check(Self.store(url)).ending == .exited(69))
    }

    @Test func `the account store is asked, with its password and its TLS`() throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        func check(_ url: String, files: [String: String] = [:]) throws -> CommandResult {
            try Self.check(
                "accounts: { url: \"\(url)\" }\n", providers: "password: { kind: password }", files: files)
        }
        let empty = try check(server.url(database: database))
        #expect(empty.ending == .exited(0) && empty.output.contains("accounts: ok, "), "\(empty)")
        #expect(try server.query("SELECT count(*) FROM pg_class WHERE relname = 'accounts'", database: database) == "0")
        let wrong = try check(server.url(database: database).replacing("p%40ss", with: "guess"))
        #expect(wrong.ending == .exited(69) && wrong.output.contains("accounts.connect_failed"), "\(wrong)")
        #expect(!wrong.description.contains("guess"))
        let verified = server.url(database: database, options: "?sslmode=verify-full&sslrootcert=ca.pem")
        let missing = try check(verified)
        #expect(missing.ending == .exited(69) && missing.output.contains("accounts.connect_failed"), "\(missing)")
        // Relative to the configuration, like every other path.
        let authority = try String(contentsOfFile: server.authority.certificateFile, encoding: .utf8)
        let good = try check(verified, files: ["ca.pem": authority])
        #expect(good.ending == .exited(0), "\(good)")
        let folder = try check("sqlite:no/such/folder/martlet.db")
        #expect(folder.ending == .exited(69) && folder.output.contains("accounts.read_only"), "\(folder)")
        let file = try check("sqlite:martlet.db", files: ["martlet.db": "this is no database, and long enough to tell"])
        #expect(file.ending == .exited(69) && file.output.contains("accounts.corrupt"), "\(file)")
    }

    @Test func `WeChat is asked whether it accepts each application's secret`() throws {
        let simulator = try RunningSimulator("wechat", "--app", "wx00000000000000aa:good-secret:mini_program")
        func check(_ secret: String, _ id: String = "wx00000000000000aa", at url: String? = nil) throws -> CommandResult
        {
            try Self.check(
                "",
                providers: """
                    wechat:
                      kind: wechat
                      base_url: "\(url ?? simulator.url)"
                      apps: { mini: { variant: mini_program, app_id: \(id), app_secret: \(secret) } }
                    """)
        }
        let good = try check("good-secret")
        #expect(good.ending == .exited(0) && good.output.contains("provider wechat app 'mini': ok"), "\(good)")
        #expect(good.output.contains("show only at a login"))
        let secret = try check("wrong-secret")
        #expect(secret.ending == .exited(69) && secret.output.contains("wechat.upstream_bad_secret"), "\(secret)")
        #expect(!secret.description.contains("wrong-secret"))
        let id = try check("good-secret", "wx00000000000000bb")
        #expect(id.ending == .exited(69) && id.output.contains("wechat.upstream_bad_app_id"), "\(id)")
        let away = try check("good-secret", at: "http://127.0.0.1:\(try refusedPort())")
        #expect(away.ending == .exited(69) && away.output.contains("wechat.upstream_unreachable"), "\(away)")
        try simulator.stop()
    }

    @Test func `issuers and upstreams`() throws {
        let apple = try AppleFixture()
        let good = try Self.check("", providers: apple.provider(), arguments: ["--format", "json"])
        let limits = JSONLimits(maximumDepth: 8, maximumBytes: 1 << 20)
        let document = try #require(try JSON.parse(Array(good.output.utf8), limits: limits).object)
        #expect(good.ending == .exited(0) && document["ok"] == true && document["exit"] == 0, "\(good)")
        let online = try #require(document["online"]?.array)
        #expect(online.allSatisfy { $0.object?["ok"] == true } && online.count == 3, "\(good)")
        apple.stop()
        let away = try Self.check("", providers: apple.provider(), arguments: ["--format", "json"])
        #expect(away.ending == .exited(69) && away.output.contains("apple.keys_unavailable"), "\(away)")
        let config = GatewayConfig(endpoints: ["http://127.0.0.1:\(try refusedPort())"])
        let folder = try TemporaryFolder()
        let path = try folder.write(config.text, to: "config.yaml")
        let refused = try run(try Executable.martlet(), ["check", "--online", "--config", path])
        #expect(refused.ending == .exited(69) && refused.output.contains("upstream.connect_failed"), "\(refused)")
    }
}

/// `martlet simulate`, running.
final class RunningSimulator {
    let url: String
    private let process: ChildProcess
    private let folder: TemporaryFolder

    convenience init(_ arguments: String...) throws { try self.init(arguments) }

    init(_ arguments: [String]) throws {
        let folder = try TemporaryFolder()
        let process = try ChildProcess(Executable.martlet(), ["simulate"] + arguments, output: folder)
        try waitUntil("the simulator prints its page") { process.output.hasSuffix("'\n") }
        let found = process.output.firstMatch(of: #/http://[^ ]+:[0-9]+/#)
        url = String(try #require(found).output)
        (self.process, self.folder) = (process, folder)
    }

    var page: String { process.output }

    /// Ends it as a service manager does.
    func stop(_ signal: Int32 = 15) throws {
        process.kill(signal)
        let ending = try process.wait()
        guard ending == .exited(0) else { throw TestFailure("\(ending): \(process.errorOutput)") }
    }
}
