import Foundation
import MartletTesting
import Testing

/// The documents of the admin listener, of a gateway that serves.
@Suite struct `Admin documents` {
    private static func window(_ object: [String: Any], _ name: String = "1m") -> [String: Any] {
        (object["last"] as? [String: Any])?[name] as? [String: Any] ?? [:]
    }

    private static func list(_ gateway: Gateway, _ path: String, _ name: String) throws -> [[String: Any]] {
        try gateway.askAdmin(path).object[name] as? [[String: Any]] ?? []
    }

    @Test func `show what runs, and what was counted in the last minutes`() throws {
        try withAppleGateway { gateway, _, apple throws in
            let token = bearer(try apple.token())
            // On one connection: another loop would verify the token again.
            let client = try gateway.connect()
            for _ in 0..<5 { #expect(try client.exchange("GET", "/closed", token).status == 200) }
            for _ in 0..<3 { #expect(try gateway.get("/closed").status == 401) }

            let status = try gateway.askAdmin("/status").object
            #expect(status["version"] as? String != nil && status["state"] as? String == "ready")
            #expect((status["uptime_seconds"] as? Int).map { (0...60).contains($0) } == true)
            let configuration = status["configuration"] as? [String: Any]
            #expect((configuration?["digest"] as? String)?.count == 64 && configuration?["current"] as? Bool == true)
            #expect((configuration?["loaded_at"] as? String)?.hasSuffix("Z") == true)
            let listeners = status["listeners"] as? [[String: Any]] ?? []
            #expect(listeners.map { $0["role"] as? String } == ["public", "admin"])
            #expect(listeners.first?["address"] as? String == gateway.endpoint.description)
            #expect((status["reasons"] as? [String: Int])?["auth.credential_missing"] == 3)
            #expect((status["certificates"] as? [Any])?.isEmpty == true)
            #expect((Self.window(status)["rate"] as? Double).map { $0 > 0 } == true, "\(status)")

            let routes = try Self.list(gateway, "/routes", "routes")
            let route = try #require(routes.first { $0["name"] as? String == "closed" })
            #expect(route["auth"] as? String == "apple" && route["target"] as? String == "api")
            #expect(route["headers"] as? [String] == [] && route["query"] as? [String] == [])
            #expect(route["requests"] as? [String: Int] == ["200": 5, "401": 3])
            #expect((Self.window(route)["p99_ms"] as? Double).map { $0 > 0 } == true)

            let upstream = try #require(Self.list(gateway, "/upstreams", "upstreams").first)
            #expect(Self.window(upstream)["errors"] as? Int == 0)
            #expect((Self.window(upstream)["p50_ms"] as? Double).map { $0 > 0 } == true, "\(upstream)")

            let provider = try #require(Self.list(gateway, "/providers", "providers").first)
            #expect(provider["name"] as? String == "apple" && provider["state"] as? String == "ready")
            #expect(Self.window(provider)["hits"] as? Int == 4, "\(provider)")
            #expect(try gateway.askAdmin("/store").object["kind"] as? String == "memory")
            expectRejection(try gateway.askAdmin("/accounts"), 404, "not_found")
        }
    }

    @Test func `count errors of an upstream that fails`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(503) }
        try withMartlet(GatewayConfig(endpoints: [upstream.url]).text) { gateway throws in
            for _ in 0..<4 { #expect(try gateway.get("/").status == 503) }
            let found = try #require(Self.list(gateway, "/upstreams", "upstreams").first)
            #expect(Self.window(found)["errors"] as? Int == 4, "\(found)")
        }
    }

    @Test func `keys are fetched again when an operator asks`() throws {
        try withAppleGateway { gateway, _, apple throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            let client = try HTTPClient(to: gateway.operators)
            let before = try gateway.askAdmin("/providers").text
            let done = try client.exchange("POST", "/providers/apple/refresh")
            #expect(done.status == 200 && done.object["state"] as? String == "refreshed", "\(done)")
            #expect(before.contains(#""jwks_fetches_total":1"#))
            #expect(try gateway.askAdmin("/providers").text.contains(#""jwks_fetches_total":2"#))
            expectRejection(try client.exchange("POST", "/providers/none/refresh"), 404, "not_found")
            func command(_ arguments: String...) throws -> CommandResult {
                try run(Executable.martlet(), ["provider"] + arguments + ["--admin", "\(gateway.operators)"])
            }
            let refreshed = try command("refresh", "apple")
            #expect(refreshed.ending == .exited(0) && refreshed.output == "refreshed\n", "\(refreshed)")
            #expect(try gateway.askAdmin("/providers").text.contains(#""jwks_fetches_total":3"#))
            #expect(try command("refresh", "none").ending == .exited(1))
            let list = try command("list")
            #expect(list.ending == .exited(0) && list.output.hasPrefix("apple\tapple\tready\t"), "\(list)")
            #expect(try command("list", "--json").output.hasPrefix(#"{"providers":["#))
        }
    }

    @Test func `routes show the fields and parameters that they need, without values`() throws {
        var config = GatewayConfig(endpoints: ["builtin:echo"])
        config.routes = """
            - name: canary
              match:
                path: /v1/**
                headers: [{ name: X-Canary, equals: hidden }, { name: X-Old, present: false }]
                query: [{ name: v, prefix: hidden }]
              auth: none
              upstream: api
            """
        try withMartlet(config.text) { gateway throws in
            let response = try gateway.askAdmin("/routes")
            let route = try #require((response.object["routes"] as? [[String: Any]])?.first)
            #expect((route["headers"] as? [String])?.map { $0.lowercased() } == ["x-canary", "no x-old"], "\(route)")
            #expect(route["query"] as? [String] == ["v"] && !response.text.contains("hidden"), "\(route)")
        }
    }
}

/// `GET /explain` of the admin listener.
@Suite struct `Admin explanations` {
    @Test func `are those of the running configuration, with the sessions of its memory`() throws {
        try withSignIn { stage in
            let tokens = try stage.passwordLogin()
            let client = try HTTPClient(to: stage.gateway.admin)
            let credential = ("X-Explain-Authorization", "Bearer \(tokens.access)")
            let found = try client.exchange("GET", "/explain?path=/v1/x%3Fa=b&method=GET", [credential])
            #expect(found.status == 200, "\(found)")
            let decision = found.object["decision"] as? [String: Any]
            #expect(decision?["outcome"] as? String == "forwarded", "\(found)")
            #expect((found.object["principal"] as? [String: Any])?["subject"] as? String == tokens.subject)
            #expect(!found.text.contains(tokens.access))
            let without = try client.exchange("GET", "/explain?url=https://api.example.com/v1/x")
            #expect((without.object["decision"] as? [String: Any])?["code"] as? String == "credential_missing")
            let folder = try TemporaryFolder()
            let token = try folder.write(tokens.access + "\n", to: "token")
            let command = ["explain", "--path", "/v1/x", "--admin", "http://\(stage.gateway.admin)"]
            let explained = try run(Executable.martlet(), command + ["--token", token])
            #expect(explained.ending == .exited(0) && explained.output.contains(tokens.subject), "\(explained)")
            let rejected = try run(Executable.martlet(), command)
            #expect(rejected.ending == .exited(1) && rejected.output.contains("401 credential_missing"), "\(rejected)")
            let json = try run(
                Executable.martlet(), command + ["--json", "--header", "Authorization: Bearer \(tokens.access)"])
            #expect(json.ending == .exited(0) && json.output.contains(#""outcome":"forwarded""#), "\(json)")
            let twice = try run(
                Executable.martlet(), command + ["--token", token, "--header", "Authorization: Bearer x"])
            #expect(twice.ending == .exited(64) && twice.output.isEmpty, "\(twice)")
            // The session goes on as before.
            #expect(try stage.gateway.get("/v1/x", bearer(tokens.access)).status == 200)
        }
    }

    @Test func `of wrong passwords are no attempts, with the store in memory too`() throws {
        try withSignIn { stage in
            let client = try HTTPClient(to: stage.gateway.operators)
            for round in 0..<7 {
                let wrong = Data("alice:wrong\(round)".utf8).base64EncodedString()
                let found = try client.exchange(
                    "GET", "/explain?path=/v1/x", [("X-Explain-Authorization", "Basic \(wrong)")])
                #expect(found.status == 200, "\(found)")
            }
            _ = try stage.passwordLogin()
        }
    }

    @Test func `need a path, and no credential in the query`() throws {
        try withOpenGateway { gateway, _ throws in
            for query in [
                "", "path=x", "url=/x", "path=/x&url=http://a/", "path=/x&header=Authorization:%20Bearer%20x",
                "path=/x&token=x", "path=%zz", "path=/x&header=authorization%20:%20Bearer%20x",
                "path=/x&header=A:b%0d%0aAuthorization:%20Basic%20x", "path=/x%0d%0aA:b", "path=/x&method=A%00",
            ] {
                expectRejection(try gateway.askAdmin("/explain?\(query)"), 400, "request_invalid", query)
            }
        }
    }
}
