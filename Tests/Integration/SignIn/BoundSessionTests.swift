import Foundation
import MartletTesting
import Testing

/// A client that proves its key.
private struct BoundClient {
    private static let origin = "http://localhost"

    let stage: SignInStage
    let key: ProofKey

    /// Posts JSON with proofs.
    func post(_ target: String, _ members: [String: Any], _ proofs: [String]) throws -> HTTPMessage {
        let fields = [("Content-Type", "application/json")] + proofs.map { ("DPoP", $0) }
        return try stage.send(
            "POST", target, fields, Array(try JSONSerialization.data(withJSONObject: members)))
    }

    /// A proof for a request that gets tokens.
    func proof(_ target: String, age: Int = 0) throws -> String {
        try key.proof("POST", Self.origin + target, for: nil, age: age)
    }

    func login(_ proofs: [String]? = nil) throws -> HTTPMessage {
        let target = "/auth/login/password"
        return try post(
            target, ["username": "alice", "password": SignInStage.password], try proofs ?? [proof(target)])
    }

    func refresh(_ token: String, _ proofs: [String]? = nil) throws -> HTTPMessage {
        try post("/auth/refresh", ["refresh_token": token], try proofs ?? [proof("/auth/refresh")])
    }

    /// A request with an access token and a proof of it.
    func send(_ method: String, _ target: String, _ token: String) throws -> HTTPMessage {
        let path = target.split(separator: "?").first.map(String.init) ?? target
        let proof = try key.proof(method, Self.origin + path, for: token)
        return try stage.gateway.exchange(method, target, [("Authorization", "DPoP \(token)"), ("DPoP", proof)])
    }
}

/// Sessions that are bound to a key of the client (RFC 9449).
@Suite(.timeLimit(.minutes(2))) struct `A session that is bound to a key of its client` {
    private func withClient(
        _ setting: String, server: String = "", more: String = "", _ body: (SignInStage, BoundClient) throws -> Void
    ) throws {
        try withSignIn(server: server, more: "sessions: { dpop: \(setting) }\n\(more)") { stage in
            try body(stage, BoundClient(stage: stage, key: try ProofKey()))
        }
    }

    private func expectUnproven(
        _ response: HTTPMessage, _ reason: String, _ stage: SignInStage, at location: SourceLocation = #_sourceLocation
    ) throws {
        #expect(response.status == 401 && response.member("code") == "dpop_proof_invalid", sourceLocation: location)
        #expect(
            response["WWW-Authenticate"]?.contains("error=\"invalid_dpop_proof\"") == true, "\(response)",
            sourceLocation: location)
        let id = response["X-Request-Id"] ?? ""
        try waitUntil("\(reason) is logged") {
            stage.gateway.log.contains { $0["request_id"] == id && $0["reason"] == reason }
        }
    }

    @Test func `is of use with a proof of its key alone`() throws {
        try withClient("optional") { stage, client throws in
            let login = try client.login()
            #expect(login.status == 200 && login.member("token_type") == "DPoP")
            let tokens = try Tokens(login)
            let stranger = BoundClient(stage: stage, key: try ProofKey())
            for _ in 0..<3 { #expect(try client.send("GET", "/who?a=b", tokens.access).status == 200) }
            #expect(stage.upstream.requests.last?["X-Auth-Subject"] == tokens.subject)
            let reached = stage.upstream.requests.count
            let used = try client.key.proof("GET", "http://localhost/who", for: tokens.access)
            let fields = [("Authorization", "DPoP \(tokens.access)"), ("DPoP", used)]
            #expect(try stage.gateway.get("/who", fields).status == 200)
            try expectUnproven(try stage.gateway.get("/who", fields), "dpop.replayed", stage)
            try expectUnproven(try stage.gateway.get("/who", bearer(tokens.access)), "auth.bound_token", stage)
            try expectUnproven(try stranger.send("GET", "/who", tokens.access), "dpop.wrong_key", stage)
            try expectUnproven(
                try stage.gateway.get("/who", [("Authorization", "DPoP \(tokens.access)")]), "dpop.missing", stage)
            #expect(stage.upstream.requests.count == reached + 1)
            // The endpoints, too.
            try expectUnproven(try stage.send("GET", "/auth/session", bearer: tokens.access), "auth.bound_token", stage)
            try expectUnproven(try stranger.send("GET", "/auth/session", tokens.access), "dpop.wrong_key", stage)
            #expect(try client.send("GET", "/auth/session", tokens.access).member("session_id") == tokens.session)
            let list = try client.send("GET", "/auth/sessions", tokens.access).object["sessions"] as? [[String: Any]]
            #expect(list?.first?["bound"] as? Bool == true)
            #expect(try client.send("POST", "/auth/logout?all=true", tokens.access).status == 204)
            #expect(try client.send("GET", "/who", tokens.access).status == 401)
        }
    }

    @Test func `is refreshed with its key, and nothing else consumes its token`() throws {
        try withClient("optional") { stage, client throws in
            let first = try Tokens(try client.login())
            let stranger = BoundClient(stage: stage, key: try ProofKey())
            try expectUnproven(try stranger.refresh(first.refresh), "dpop.wrong_key", stage)
            try expectUnproven(try client.refresh(first.refresh, []), "dpop.missing", stage)
            let elsewhere = try client.proof("/auth/login/password")
            try expectUnproven(try client.refresh(first.refresh, [elsewhere]), "dpop.htu_mismatch", stage)
            let old = try client.proof("/auth/refresh", age: 120)
            try expectUnproven(try client.refresh(first.refresh, [old]), "dpop.too_old", stage)
            let next = try client.refresh(first.refresh)
            #expect(next.status == 200 && next.member("token_type") == "DPoP")
            let second = try Tokens(next)
            #expect(try client.send("GET", "/who", second.access).status == 200)
            #expect(try client.send("GET", "/who", first.access).status == 200)
            let again = try client.refresh(first.refresh)
            #expect(try Tokens(again).refresh == second.refresh)
        }
    }

    @Test func `is the only one where a key is required`() throws {
        try withClient("required") { stage, client throws in
            try expectUnproven(try client.login([]), "dpop.missing", stage)
            let two = try [client.proof("/auth/login/password"), client.proof("/auth/login/password")]
            try expectUnproven(try client.login(two), "dpop.repeated", stage)
            try expectUnproven(try client.login(["x"]), "dpop.malformed", stage)
            let get = try client.key.proof("GET", "http://localhost/auth/login/password", for: nil)
            try expectUnproven(try client.login([get]), "dpop.htm_mismatch", stage)
            let used = try client.proof("/auth/login/password")
            let tokens = try Tokens(try client.login([used]))
            try expectUnproven(try client.login([used]), "dpop.replayed", stage)
            #expect(try client.send("GET", "/who", tokens.access).status == 200)
        }
    }

    @Test func `has the URL that its client sees`() throws {
        try withClient("required", server: "trusted_proxies: [127.0.0.1]") { stage, client throws in
            let proxied = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "Api.example.com")]
            let body = Array(#"{"username":"alice","password":"\#(SignInStage.password)"}"#.utf8)
            func login(_ url: String) throws -> Int {
                let proof = try client.key.proof("POST", url, for: nil)
                let fields = [("Content-Type", "application/json"), ("DPoP", proof)] + proxied
                return try stage.send("POST", "/auth/login/password", fields, body).status
            }
            #expect(try login("https://api.example.com/auth/login/password") == 200)
            #expect(try login("http://localhost/auth/login/password") == 401)
        }
    }

    @Test func `is none where that is off`() throws {
        try withClient("off") { stage, client throws in
            for proofs in [[], ["x", "y"], [try client.proof("/auth/login/password")]] {
                let login = try client.login(proofs)
                #expect(login.status == 200 && login.member("token_type") == "Bearer")
                let tokens = try Tokens(login)
                #expect(try stage.status(with: tokens.access) == 200)
                #expect(try client.refresh(tokens.refresh, proofs).member("token_type") == "Bearer")
            }
        }
    }

    @Test func `may have been a bearer's before, at any instance of the store`() throws {
        let redis = try RedisServer()
        try withClient("optional", more: "store: { url: \"\(redis.url)\" }") { stage, client throws in
            let first = try Tokens(try client.login([]))
            let other = try stage.startAnother()
            let body = Array(#"{"refresh_token":"\#(first.refresh)"}"#.utf8)
            let fields = [("Content-Type", "application/json"), ("DPoP", try client.proof("/auth/refresh"))]
            let next = try other.exchange("POST", "/auth/refresh", fields, body: body)
            #expect(next.status == 200 && next.member("token_type") == "DPoP")
            let second = try Tokens(next)
            // A proof that one instance has seen is used for all.
            #expect(try stage.send("POST", "/auth/refresh", fields, body).status == 401)
            #expect(try client.send("GET", "/who", second.access).status == 200)
            #expect(try stage.status(with: first.access) == 200)
            #expect(try stage.status(with: second.access) == 401)
            try expectUnproven(try client.refresh(second.refresh, []), "dpop.missing", stage)
            #expect(try client.refresh(second.refresh).status == 200)
            try other.stop()
        }
    }

    @Test(arguments: ["deny", "cached"])
    func `is unavailable where its proof cannot be marked`(onError: String) throws {
        let redis = try RedisServer()
        let store = "store: { url: \"\(redis.url)\", on_error: \(onError) }"
        try withClient("optional", more: store) { stage, client throws in
            let tokens = try Tokens(try client.login())
            #expect(try client.send("GET", "/who", tokens.access).status == 200)
            try redis.stop()
            try waitUntil("the outage is known") { try client.login().status == 503 }
            expectUnavailable(try client.login())
            expectUnavailable(try client.refresh(tokens.refresh))
            expectUnavailable(try client.send("GET", "/who", tokens.access))
        }
    }
}
