import Foundation
import MartletTesting
import Testing

/// A gateway with one password user, `alice`, and sessions in a Redis of its own.
private struct Office {
    let gateway: Gateway
    let redis: RedisServer

    static func open(_ body: (Office) throws -> Void) throws {
        let redis = try RedisServer()
        var configuration = GatewayConfig(
            endpoints: ["builtin:echo"],
            providers: "password: { kind: password, users: accounts, hash: { memory: 8MiB, iterations: 1 } }",
            routes: "- { name: closed, match: { path: /** }, auth: { providers: [password] }, upstream: api }")
        configuration.more = "accounts: { url: \"sqlite:users.db\" }\nstore: { url: \"\(redis.url)\" }\n"
        try withMartlet(configuration.text) { gateway in
            let office = Office(gateway: gateway, redis: redis)
            let added = try office.user("add", "alice", input: "correct horse\n")
            guard added.ending == .exited(0) else { throw TestFailure("\(added)") }
            try body(office)
        }
    }

    func user(_ arguments: String..., input: String = "") throws -> CommandResult {
        let all = ["user"] + arguments + ["--config", gateway.folder.file("config.yaml")]
        return try run(try Executable.martlet(), all, input: input)
    }

    /// The status of a login, and the access token.
    func login(_ password: String = "correct horse") throws -> (status: Int, token: String) {
        let body = Array(#"{"username":"Alice","password":"\#(password)"}"#.utf8)
        let response = try gateway.exchange(
            "POST", "/auth/login/password", [("Content-Type", "application/json")], body: body)
        return (response.status, response.member("access_token") ?? "")
    }

    func status(bearer token: String) throws -> Int {
        try gateway.get("/", [("Authorization", "Bearer \(token)")]).status
    }

    func status(basic password: String) throws -> Int {
        let credential = Data("alice:\(password)".utf8).base64EncodedString()
        return try gateway.get("/", [("Authorization", "Basic \(credential)")]).status
    }
}

@Suite(.timeLimit(.minutes(2))) struct UserRevocationTests {
    @Test func `a disabled user is out everywhere, and may come back`() throws {
        try Office.open { office in
            let (first, second) = (try office.login(), try office.login())
            #expect(first.status == 200 && second.status == 200)
            for session in [first, second] { #expect(try office.status(bearer: session.token) == 200) }
            #expect(try office.status(basic: "correct horse") == 200)
            let result = try office.user("disable", "alice")
            #expect(
                result.ending == .exited(0) && result.output.contains("all sessions of the user ended"), "\(result)")
            // Promised within 1 s on a machine that is not loaded; the loops' own copies would live for 5 s.
            try waitUntil("the sessions are over", within: .seconds(4)) {
                try [first, second].allSatisfy { try office.status(bearer: $0.token) == 401 }
            }
            try waitUntil("Basic is over", within: .seconds(4)) { try office.status(basic: "correct horse") == 401 }
            #expect(try office.login().status == 401)
            #expect(try office.user("enable", "alice").ending == .exited(0))
            #expect(try office.login().status == 200)
            #expect(try office.status(bearer: first.token) == 401)
        }
    }

    @Test func `a new password ends what the old one began`() throws {
        try Office.open { office in
            let session = try office.login()
            #expect(try office.status(bearer: session.token) == 200)
            let result = try office.user("passwd", "alice", input: "battery staple\n")
            #expect(
                result.ending == .exited(0) && result.output.contains("all sessions of the user ended"), "\(result)")
            try waitUntil("the session is over", within: .seconds(4)) {
                try office.status(bearer: session.token) == 401
            }
            #expect(try office.login().status == 401)
            let fresh = try office.login("battery staple")
            #expect(fresh.status == 200)
            #expect(try office.status(bearer: fresh.token) == 200)
        }
    }

    @Test func `a user is disabled although Redis is unavailable, and the command says what is left to do`() throws {
        try Office.open { office in
            #expect(try office.login().status == 200)
            try office.redis.stop()
            let result = try office.user("disable", "alice")
            #expect(result.ending == .exited(69) && result.errorOutput.contains("try again"), "\(result)")
            #expect(try office.user("list").output == "alice\tdisabled\n")
            try office.redis.restart()
            #expect(try office.user("disable", "alice").ending == .exited(0))
        }
    }
}
