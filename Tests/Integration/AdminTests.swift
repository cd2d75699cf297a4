import MartletTesting
import Testing

/// The admin listener: pages, rejections, and the command that queries it.
@Suite struct `Admin listener` {
    static func ask(_ gateway: Gateway, _ method: String, _ target: String) throws -> HTTPMessage {
        try HTTPClient(to: gateway.admin).exchange(method, target)
    }

    @Test func `every page supports GET and HEAD, with the same length`() throws {
        try withOpenGateway { gateway, _ throws in
            for path in ["/", "/livez", "/readyz", "/healthz", "/metrics"] {
                let client = try HTTPClient(to: gateway.admin)
                let whole = try client.exchange("GET", path)
                #expect(whole.status == 200 && !whole.body.isEmpty, "\(path): \(whole)")
                #expect(whole["Cache-Control"] == "no-store", "\(path)")
                let head = try client.exchange("HEAD", path)
                #expect(head.status == 200 && head.body.isEmpty, "\(path): \(head)")
                #expect(head["Content-Type"] == whole["Content-Type"], "\(path)")
            }
        }
    }

    @Test func `what is not there is 404, other methods are 405, both as problems`() throws {
        try withOpenGateway { gateway, _ throws in
            for path in ["/nothing", "/metrics/", "/livez/x", "/READYZ"] {
                expectRejection(try Self.ask(gateway, "GET", path), 404, "not_found", path)
            }
            for method in ["POST", "DELETE", "OPTIONS"] {
                let response = try Self.ask(gateway, method, "/metrics")
                expectRejection(response, 405, "method_not_allowed", method)
                #expect(response["Allow"] == "GET, HEAD")
            }
        }
    }

    @Test func `the dashboard holds nothing from outside and says so`() throws {
        try withAppleGateway { gateway, _, apple throws in
            _ = try gateway.get("/closed", bearer(apple.token()))
            let page = try gateway.askAdmin("/")
            #expect(page["Content-Type"] == "text/html; charset=utf-8")
            let policy = page["Content-Security-Policy"] ?? ""
            #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"))
            #expect(!policy.contains("unsafe"))
            #expect(page.text.contains("<script type=\"module\" src=\"/dashboard.js\"></script>"))
            #expect(!page.text.contains(`Identity headers`.subject))
            for (path, type) in [("/dashboard.css", "text/css"), ("/dashboard.js", "text/javascript")] {
                #expect(try gateway.askAdmin(path)["Content-Type"] == "\(type); charset=utf-8", "\(path)")
            }
        }
    }

    @Test func `reloads are counted, good ones and bad ones`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(try Lifecycle.fixedPorts(upstream, path: "/a").text) { gateway throws in
            func metric(_ line: String) throws -> Bool { try gateway.askAdmin("/metrics").text.contains(line + "\n") }
            #expect(try metric("martlet_server_configuration_current 1"))
            try gateway.reload(Lifecycle.config(upstream, path: "/b", for: gateway) + "unknown_key: 1\n")
            try waitUntil("the failure is counted") { try metric("martlet_server_reloads_total{result=\"failure\"} 1") }
            #expect(try metric("martlet_server_configuration_current 0"))
            try gateway.reload(Lifecycle.config(upstream, path: "/b", for: gateway))
            try waitUntil("the success is counted") { try metric("martlet_server_reloads_total{result=\"success\"} 1") }
            #expect(try metric("martlet_server_configuration_current 1"))
        }
    }

    @Test func `operators get in when clients fill the gateway`() throws {
        try withOpenGateway(server: "limits: { connections: 1 }") { gateway, _ throws in
            let held = try gateway.connect()
            #expect(try held.exchange("GET", "/").status == 200)
            #expect(try gateway.askAdmin("/readyz").status == 200)
            #expect(try gateway.get("/").status == 503)
            #expect(try held.exchange("GET", "/").status == 200)
        }
    }

    @Test func `an unavailable store is named, and under deny it is 503`() throws {
        for (onError, status) in [("cached", 200), ("deny", 503)] {
            let redis = try RedisServer()
            let upstream = try ScriptedUpstream()
            var config = GatewayConfig(endpoints: [upstream.url])
            config.more = """
                instance_id: edge-1
                store: { url: "\(redis.url)", on_error: \(onError) }
                sessions: { cache_ttl: 2s }

                """
            try withMartlet(config.text) { gateway throws in
                try waitUntil("it is ready") { try gateway.askAdmin("/readyz").member("status") == "ready" }
                try redis.stop()
                let state = status == 200 ? "degraded" : "unavailable"
                try waitUntil("it says so") { try gateway.askAdmin("/readyz").member("status") == state }
                let response = try gateway.askAdmin("/readyz")
                #expect(response.status == status && response.text.contains("\"store\""), "\(response)")
                #expect(response.member("instance_id") == "edge-1")
                #expect(try gateway.askAdmin("/metrics").text.contains("instance_id=\"edge-1\""))
                try waitUntil("sessions are refused") {
                    try gateway.askAdmin("/readyz").text.contains(#""name":"sessions","state":"refused""#)
                }
                #expect((response["Retry-After"] != nil) == (status == 503))
                let health = try `Command line`.martlet("health", "--address", "\(gateway.admin)")
                #expect(health.ending == .exited(status == 200 ? 0 : 69), "\(health)")
                #expect(health.output.hasPrefix("\(state): store "), "\(health)")
                try redis.restart()
                try waitUntil("it is ready again") { try gateway.askAdmin("/readyz").member("status") == "ready" }
            }
        }
    }

    @Test func `a password that has been changed is read before the next connection`() throws {
        let redis = try RedisServer(password: "first")
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let file = folder.file("redis.pw")
        try folder.write("first\n", to: "redis.pw")
        var config = GatewayConfig(endpoints: [upstream.url])
        config.server = "watch: false"
        config.more = "store: { url: \"redis://127.0.0.1:\(redis.port)\", password_file: \"\(file)\" }\n"
        try withMartlet(config.text) { gateway throws in
            func isReady() throws -> Bool { try gateway.askAdmin("/readyz").member("status") == "ready" }
            try waitUntil("it is ready", isReady)
            _ = try redis.command("AUTH first\r\nCONFIG SET requirepass second\r\nCLIENT KILL TYPE normal SKIPME no")
            try waitUntil("the old password is rejected") {
                try gateway.askAdmin("/readyz").text.contains("rejected the user name or password")
            }
            try folder.write("second\n", to: "redis.pw")
            try waitUntil("the new one is used", isReady)
        }
    }

    @Test func `health asks over IPv6 and unix sockets, and waits no longer than its timeout`() throws {
        let folder = try TemporaryFolder()
        let upstream = try ScriptedUpstream()
        for address in ["\"[::1]:0\"", "unix:\(folder.file("admin.sock"))"] {
            var config = GatewayConfig(endpoints: [upstream.url])
            config.admin = "address: \(address)"
            try withMartlet(config.text) { gateway throws in
                let result = try `Command line`.martlet("health", "--address", "\(gateway.admin)")
                #expect(result.ending == .exited(0) && result.output == "ready\n", "\(result)")
            }
        }
        let mute = try Listener(on: .loopback(0))
        let started = Stopwatch()
        let result = try `Command line`.martlet("health", "--address", "\(mute.endpoint)")
        #expect(result.ending == .exited(69), "\(result)")
        #expect(started.undisturbed < .seconds(10))
        for arguments in [
            ["health", "--address", "nonsense"], ["health", "--address", "127.0.0.1:0"], ["health", "x"],
        ] {
            #expect(try run(try Executable.martlet(), arguments).ending == .exited(64), "\(arguments)")
        }
    }
}
