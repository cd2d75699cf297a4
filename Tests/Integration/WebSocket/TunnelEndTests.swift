import Foundation
import MartletTesting
import Testing

/// When the gateway itself ends a tunnel or a long response.
@Suite struct `Ends of credentials` {
    /// A stream of events that never ends by itself.
    static let events: ScriptedUpstream.Script = { exchange in
        guard exchange.request["Upgrade"] == nil else { return try EchoScript().script(exchange) }
        guard exchange.request.target.hasPrefix("/events") else { return try exchange.respond(200, body: "ok") }
        try exchange.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        try exchange.send("9\r\ndata: 1\n\n\r\n")
        _ = exchange.waitForEnd(within: .seconds(60))
        exchange.closes = true
    }

    static func openEvents(_ gateway: Gateway, _ fields: [(String, String)]) throws -> HTTPClient {
        let client = try gateway.connect()
        try client.send("GET", "/events", fields)
        guard let head = try client.reader.readHead(), head.status == 200 else { throw TestFailure("no stream") }
        // The first event may come behind the head: who then listens for silence has heard it.
        var events = client.reader.pending
        while !String(decoding: events, as: UTF8.self).contains("data: 1") { events += try client.socket.receive() }
        return client
    }

    /// How long until a stream is cut; it must not look complete.
    static func expectCut(_ client: HTTPClient, within limit: Duration = .seconds(5)) throws {
        let bytes = client.reader.pending + (try client.socket.receiveToEnd(within: limit))
        #expect(!String(decoding: bytes, as: UTF8.self).hasSuffix("0\r\n\r\n"))
    }

    /// The connection itself, whose client does not reply to Close.
    @Test(arguments: ["logout", "disable"])
    func `a tunnel's connection is closed within a second`(_ how: String) throws {
        try withSignIn { stage in
            let echo = EchoScript()
            stage.upstream.respond { try echo.script($0) }
            for round in 0..<4 {
                let tokens = try stage.passwordLogin()
                let end = try stage.gateway.webSocket("/\(round)", bearer(tokens.access))
                try end.expectEcho("hello")
                pause(.milliseconds(170 * round))
                let command = [how, tokens.subject, "--config", stage.gateway.folder.file("config.yaml")]
                if how == "logout" {
                    #expect(try stage.send("POST", "/auth/logout", bearer: tokens.access).status == 204)
                } else {
                    #expect(try run(Executable.martlet(), ["account"] + command).ending == .exited(0))
                }
                let start = Stopwatch()
                #expect(end.socket.isEnded(within: .seconds(5)))
                #expect(start.undisturbed <= .seconds(1), "\(how), round \(round): \(start.undisturbed)")
                guard how == "disable" else { continue }
                let enable = ["account", "enable"] + command.dropFirst()
                #expect(try run(Executable.martlet(), enable).ending == .exited(0))
                try waitUntil("the account may sign in again") {
                    try stage.post(
                        "/auth/login/password", ["username": "alice", "password": SignInStage.password]
                    ).status == 200
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `a logout ends the session's tunnels and streams within a second`(usesRedis: Bool) throws {
        let redis = try usesRedis ? RedisServer() : nil
        try withSignIn(more: redis.map { "store: { url: \"\($0.url)\" }" } ?? "") { stage in
            let echo = EchoScript()
            stage.upstream.respond { exchange in
                try (exchange.request["Upgrade"] == nil ? Self.events : echo.script)(exchange)
            }
            let (tokens, other) = try (stage.passwordLogin(), stage.passwordLogin())
            let end = try stage.gateway.webSocket("/revoked", bearer(tokens.access))
            let kept = try stage.gateway.webSocket("/kept", bearer(other.access))
            let stream = try Self.openEvents(stage.gateway, bearer(tokens.access))
            let keptStream = try Self.openEvents(stage.gateway, bearer(other.access))
            try end.expectEcho("hello")
            pause(.milliseconds(800))
            #expect(try stage.send("POST", "/auth/logout", bearer: tokens.access).status == 204)
            let start = Stopwatch()
            try end.expectClose(4401, "session revoked")
            try Self.expectCut(stream)
            #expect(start.undisturbed < .seconds(1))
            try waitUntil("the upstream sees the end") { !echo.ends.value.isEmpty }
            #expect(echo.ends.value.first??.status == 1001)
            try kept.expectEcho("still here")
            #expect(keptStream.socket.isSilent(for: .milliseconds(300)))
            #expect(try stage.gateway.record(of: "/revoked")["reason"] == "auth.credential_revoked")
            let again = try stage.gateway.get("/revoked", webSocketFields + bearer(tokens.access))
            expectRejection(again, 401, "credential_invalid")
        }
    }

    @Test func `an end that went unheard is found out after the gap`() throws {
        let redis = try RedisServer()
        try withSignIn(more: "store: { url: \"\(redis.url)\" }") { stage in
            let (ended, kept) = try (stage.passwordLogin(), stage.passwordLogin())
            stage.upstream.respond(with: Self.events)
            let end = try stage.gateway.webSocket("/ended", bearer(ended.access))
            let stream = try Self.openEvents(stage.gateway, bearer(ended.access))
            let other = try stage.gateway.webSocket("/kept", bearer(kept.access))
            pause(.seconds(1))
            // The session ends without a message.
            let keys = try redis.command("KEYS *}:s\(ended.session.dropFirst(4))").split(separator: "\r\n")
            #expect(try redis.command("DEL \(keys.last ?? "none")").hasPrefix(":1"), "\(keys)")
            try end.expectEcho("unaware")
            #expect(try redis.command("CLIENT KILL TYPE pubsub").hasPrefix(":"))
            try end.expectClose(4401, "session revoked")
            try Self.expectCut(stream)
            try other.expectEcho("still here")
        }
    }

    @Test func `another password ends the subject's other tunnels`() throws {
        try withSignIn { stage in
            stage.upstream.respond(with: EchoScript().script)
            let (mine, other) = try (stage.passwordLogin(), stage.passwordLogin())
            let kept = try stage.gateway.webSocket("/", bearer(mine.access))
            let ended = try stage.gateway.webSocket("/", bearer(other.access))
            let pair = Data("alice:\(SignInStage.password)".utf8).base64EncodedString()
            let basic = try stage.gateway.webSocket("/", [("Authorization", "Basic \(pair)")])
            let change = ["current_password": SignInStage.password, "new_password": "another battery"]
            #expect(try stage.post("/auth/password", bearer: mine.access, change).status == 204)
            try ended.expectClose(4401, "session revoked")
            try basic.expectClose(4401, "session revoked")
            try kept.expectEcho("still here")
        }
    }

    @Test func `an access token that runs out ends them, its session's next token or not`() throws {
        let more = "sessions: { access_ttl: 3s }"
        try withSignIn(more: more) { stage in
            stage.upstream.respond(with: Self.events)
            let stopwatch = Stopwatch()
            let tokens = try stage.passwordLogin()
            let end = try stage.gateway.webSocket("/", bearer(tokens.access))
            let stream = try Self.openEvents(stage.gateway, bearer(tokens.access))
            let next = try Tokens(stage.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            let renewed = try stage.gateway.webSocket("/", bearer(next.access))
            try end.expectClose(4401, "credential expired")
            // Of the token's 3 s up to one is lost to whole seconds.
            #expect(stopwatch.elapsed > .seconds(2) && stopwatch.undisturbed < .milliseconds(4500))
            try Self.expectCut(stream)
            try renewed.expectClose(4401, "credential expired")
        }
    }

    @Test func `a direct token that runs out ends them, unless the route says otherwise`() throws {
        let routes = """
            - { name: grace, match: { path: /grace }, auth: { providers: [apple] }, upstream: api, upgrade: { close_on_expiry: 2s } }
            - { name: never, match: { path: /never }, auth: { providers: [apple] }, upstream: api, upgrade: { close_on_expiry: false } }
            - { name: all, match: { path: /** }, auth: { providers: [apple] }, upstream: api }
            """
        try withAppleGateway(routes: routes, script: EchoScript().script) { gateway, _, apple throws in
            let stopwatch = Stopwatch()
            let fields = bearer(try apple.token { $0.claims["exp"] = JSONText(unixNow() + 2) })
            let ends = try ["/now", "/grace", "/never"].map { try gateway.webSocket($0, fields) }
            try ends[0].expectClose(4401, "credential expired")
            #expect(stopwatch.undisturbed < .milliseconds(3200))
            try ends[1].expectEcho("in grace")
            try ends[1].expectClose(4401, "credential expired")
            // Of the token's 2 s up to one is lost to whole seconds.
            #expect(stopwatch.elapsed > .seconds(3) && stopwatch.undisturbed < .milliseconds(6500))
            try ends[2].expectEcho("for ever")
        }
    }

    @Test func `an upload that outlives its token ends, a slow response does not`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            if exchange.request.target == "/slow" {
                pause(.milliseconds(2500))
                return try exchange.respond(200, body: "late")
            }
            try exchange.readBody()
            try exchange.respond(200, body: "whole")
        }
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream(readsBodies: false, script)
        let config = GatewayConfig(
            endpoints: [upstream.url], providers: apple.provider(""), routes: GatewayConfig.closed)
        try withMartlet(config.text) { gateway in
            let fields = bearer(try apple.token { $0.claims["exp"] = JSONText(unixNow() + 2) })
            let slow = try gateway.connect()
            try slow.send("GET", "/slow", fields)
            let upload = try gateway.connect()
            try upload.send("POST", "/upload", fields + [("Content-Length", "100")])
            try upload.send("begun")
            expectUnauthorized(try upload.response(), "credential_invalid")
            #expect(try slow.response().text == "late")
            #expect(try gateway.record(of: "/upload")["reason"] == "auth.credential_expired")
        }
    }

    @Test func `a Close waits for the end of a frame, and not for long`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            let end = try exchange.acceptWebSocket()
            let frame = Frame.text("a long message").bytes(masked: false)
            try exchange.send(Array(frame.prefix(9)))
            try waitUntil("the token is over", within: .seconds(20)) { exchange.socket.isSilent(for: .zero) == false }
            #expect(try end.frame()?.status == 1001)
            if exchange.request.target == "/whole" { try exchange.send(Array(frame.dropFirst(9) + frame)) }
            _ = exchange.waitForEnd()
        }
        try withAppleGateway(script: script) { gateway, _, apple throws in
            let fields = bearer(try apple.token { $0.claims["exp"] = JSONText(unixNow() + 2) })
            let (whole, stuck) = try (gateway.webSocket("/whole", fields), gateway.webSocket("/stuck", fields))
            #expect(try whole.frame()?.words == "a long message")
            try whole.expectClose(4401, "credential expired")
            #expect(try stuck.frame() == nil)
        }
    }
}

/// When a tunnel has lasted long enough.
@Suite struct `Ends of tunnels` {
    @Test func `silence ends it, by the route's timeout or the upstream's`() throws {
        for (upstream, route) in [("", "idle: 1s"), ("timeouts: { idle: 1s }", "idle: 1h")] {
            let routes = "- { name: all, match: { path: /** }, auth: none, upstream: api, upgrade: { \(route) } }"
            let echo = EchoScript()
            try withOpenGateway(upstream: upstream, routes: routes, script: echo.script) { gateway, _ throws in
                let end = try gateway.webSocket("/idle")
                for _ in 0..<3 {
                    pause(.milliseconds(500))
                    try end.expectEcho("not yet")
                }
                pause(.milliseconds(500))
                let stopwatch = Stopwatch()
                try end.expectEcho("not yet")
                try end.expectClose(1001, "idle")
                #expect(stopwatch.elapsed > .milliseconds(900) && stopwatch.undisturbed < .milliseconds(2500))
                #expect(try gateway.record(of: "/idle")["reason"] == "tunnel.idle")
                try waitUntil("the upstream has read the close") { !echo.ends.value.isEmpty }
                #expect(echo.ends.value.first??.status == 1001)
            }
        }
    }

    @Test func `age ends it, however busy it is`() throws {
        let routes =
            "- { name: all, match: { path: /** }, auth: none, upstream: api, upgrade: { max_connection_age: 1s } }"
        try withOpenGateway(routes: routes, script: EchoScript().script) { gateway, _ throws in
            let stopwatch = Stopwatch()
            let end = try gateway.webSocket("/old")
            while let frame = try? end.send("x") == () ? end.frame() : nil, frame.first != Frame.close {
                pause(.milliseconds(20))
            }
            #expect(stopwatch.elapsed > .milliseconds(900) && stopwatch.undisturbed < .milliseconds(2500))
            #expect(try gateway.record(of: "/old")["reason"] == "tunnel.too_old")
        }
    }

    @Test func `a drain tells WebSockets at its start and lets others go on`() throws {
        let routes =
            "- { name: all, match: { path: /** }, auth: none, upstream: api, upgrade: [websocket, tcp] }"
        let echo = EchoScript()
        let script: ScriptedUpstream.Script = { exchange in
            guard exchange.request["Upgrade"] == "tcp" else { return try echo.script(exchange) }
            try exchange.send("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\n")
            _ = exchange.waitForEnd(within: .seconds(30))
            exchange.closes = true
        }
        let server = "timeouts: { drain: 3s }"
        try withOpenGateway(server: server, routes: routes, script: script) { gateway, _ throws in
            let ends = try (0..<20).map { _ in try gateway.webSocket("/chat") }
            let raw = try gateway.connect()
            try raw.send("GET", "/raw", [("Connection", "Upgrade"), ("Upgrade", "tcp")])
            #expect(try raw.response().status == 101)
            gateway.process.kill(SIGTERM)
            let start = Stopwatch()
            for end in ends { try end.expectClose(1001, "gateway is stopping") }
            #expect(start.undisturbed < .milliseconds(2500))
            try waitUntil("the upstream has read every close") { echo.ends.value.count == 20 }
            #expect(echo.ends.value.allSatisfy { $0?.status == 1001 })
            #expect(raw.socket.isEnded(within: .seconds(5)))
            #expect(try gateway.process.wait(within: .seconds(5)) == .exited(0))
            #expect(start.elapsed > .milliseconds(2500))
        }
    }
}
