import MartletTesting
import Testing

/// `martlet simulate apple` over HTTP: what a gateway meets at Apple.
@Suite(.timeLimit(.minutes(2))) struct `Simulated Apple` {
    private static let app = "com.example.app"
    private static let team = "ABCDE12345"
    private static let keyID = "KEY1234567"

    /// The simulator with the team's key.
    private struct Stage {
        let simulator: RunningSimulator
        let key: SigningKey
        let endpoint: Endpoint

        init(_ arguments: [String] = []) throws {
            key = try SigningKey(keyID, .p256)
            let folder = try TemporaryFolder()
            let file = try folder.write(String(decoding: key.publicPEM(), as: UTF8.self), to: "public.pem")
            simulator = try RunningSimulator(
                ["apple", "--team", team, "--key", "\(keyID)=\(file)"] + arguments)
            endpoint = try Endpoint(text: String(simulator.url.dropFirst("http://".count)))
        }

        /// A client secret, signed by OpenSSL.
        func secret() throws -> String {
            var token = Token(kid: keyID)
            token.header["alg"] = "\"ES256\""
            let now = unixNow()
            token.claims = [
                "iss": JSONText(string: team), "aud": "\"https://appleid.apple.com\"", "sub": JSONText(string: app),
                "iat": JSONText(now - 5), "exp": JSONText(now + 300),
            ]
            return try token.signed(by: key)
        }

        func order(_ path: String, _ body: String) throws -> HTTPMessage {
            let response = try HTTPClient(to: endpoint).exchange(
                "POST", path, [("Content-Type", "application/json")], body: Array(body.utf8))
            guard response.status == 200 else { throw TestFailure("\(path) \(body): \(response)") }
            return response
        }

        func code() throws -> String {
            try #require(
                try order("/simulator/token", #"{"audience": "\#(app)", "code": true}"#).member("authorization_code"))
        }

        func request(_ path: String, _ parameters: String) throws -> HTTPClient {
            let client = try HTTPClient(to: endpoint)
            let body = "client_id=\(app)&client_secret=\(try secret())&\(parameters)"
            try client.send(
                "POST", path, [("Content-Type", "application/x-www-form-urlencoded"), ("User-Agent", "test")],
                body: Array(body.utf8))
            return client
        }

        func call(_ path: String, _ parameters: String) throws -> HTTPMessage {
            try request(path, parameters).response(to: "POST")
        }
    }

    @Test func `a code, a refresh, a revocation, and the log of it`() throws {
        let stage = try Stage(["--refresh-limit", "2"])
        let code = try stage.code()
        let tokens = try stage.call("/auth/token", "grant_type=authorization_code&code=\(code)")
        #expect(tokens.status == 200, "\(tokens)")
        #expect(
            try stage.call("/auth/token", "grant_type=authorization_code&code=\(code)").member("error")
                == "invalid_grant")
        let token = try #require(tokens.member("refresh_token"))
        let refresh = "grant_type=refresh_token&refresh_token=\(token)"
        for status in [200, 200, 429] { #expect(try stage.call("/auth/token", refresh).status == status) }
        #expect(try stage.order("/simulator/limits", #"{"refreshes_per_day": null}"#).status == 200)
        let revoked = try stage.call("/auth/revoke", "token=\(token)")
        #expect(revoked.status == 200 && revoked.body.isEmpty)
        #expect(try stage.call("/auth/token", refresh).member("error") == "invalid_grant")
        let log = try HTTPClient(to: stage.endpoint).exchange("GET", "/simulator/requests")
        let entries = try #require(log.object["requests"] as? [[String: Any]])
        #expect(entries.map { $0["status"] as? Int } == [200, 400, 200, 200, 429, 200, 400])
        #expect(Set(entries.prefix(2).compactMap { $0["code_sha256"] as? String }).count == 1)
        #expect(!log.text.contains(token))
        try stage.simulator.stop()
    }

    @Test func `a connection that is closed, and a response that is late`() throws {
        let stage = try Stage()
        let code = try stage.code()
        _ = try stage.order("/simulator/trouble", #"{"path": "/auth/token", "close": true, "processed": true}"#)
        let closed = try stage.request("/auth/token", "grant_type=authorization_code&code=\(code)")
        #expect(throws: (any Error).self) { try closed.response(to: "POST") }
        let again = try stage.call("/auth/token", "grant_type=authorization_code&code=\(code)")
        #expect(again.member("error_description") == "The code has already been used.")
        _ = try stage.order("/simulator/trouble", #"{"path": "/auth/revoke", "delay": 300}"#)
        let start = ContinuousClock.now
        #expect(try stage.call("/auth/revoke", "token=t").status == 200)
        #expect(ContinuousClock.now - start >= .milliseconds(300))
        try stage.simulator.stop()
    }

    @Test func `a notification reaches its receiver, and its status is reported`() throws {
        let stage = try Stage()
        let receiver = try ScriptedUpstream { exchange in try exchange.respond(202, [], bytes: []) }
        let order = #"{"url": "\#(receiver.url)/hook", "audience": "a", "type": "account-delete", "padding": 300000}"#
        let sent = try stage.order("/simulator/notification", order)
        #expect(sent.object["status"] as? Int == 202, "\(sent)")
        let request = try #require(receiver.requests.first)
        #expect(request.method == "POST" && request.target == "/hook")
        #expect(request["Content-Type"] == "application/json" && request.member("payload") == sent.member("payload"))
        receiver.stop()
        #expect(try stage.order("/simulator/notification", order).member("error")?.hasPrefix("fetch.") == true)
        let remote = #"{"url": "http://192.0.2.1/hook", "audience": "a", "type": "email-enabled"}"#
        #expect(try stage.order("/simulator/notification", remote).object["status"] as? Int == 0)
        try stage.simulator.stop()
    }

    @Test func `a user signs in on the page, and the code is exchanged`() throws {
        let stage = try Stage()
        let request =
            "client_id=\(Self.app)&redirect_uri=https%3A%2F%2Fexample.com%2Fcb&response_type=code%20id_token"
            + "&response_mode=form_post&scope=name%20email&state=s1&nonce=n1"
        let page = try HTTPClient(to: stage.endpoint).exchange("GET", "/auth/authorize?\(request)")
        #expect(page.status == 200 && page["Content-Type"] == "text/html; charset=utf-8", "\(page)")
        let choice = "page_account=me&page_first_name=Ada&page_email=ada%40example.com&page_action=continue"
        // Browsers write a space of a form as a plus sign.
        let body = "\(request.replacing("%20", with: "+"))&\(choice)"
        let response = try HTTPClient(to: stage.endpoint).exchange(
            "POST", "/auth/authorize", [("Content-Type", "application/x-www-form-urlencoded"), ("User-Agent", "test")],
            body: Array(body.utf8))
        #expect(response.status == 200 && response.text.contains("action=\"https://example.com/cb\""), "\(response)")
        let code = try #require(response.text.firstMatch(of: #/name="code" value="([^"]+)"/#)?.output.1)
        let parameters = "grant_type=authorization_code&code=\(code)&redirect_uri=https%3A%2F%2Fexample.com%2Fcb"
        #expect(try stage.call("/auth/token", parameters).member("refresh_token") != nil)
        let repeated = try HTTPClient(to: stage.endpoint).exchange("GET", "/auth/authorize?\(request)&state=s2")
        #expect(repeated.status == 400)
        try stage.simulator.stop()
    }

    @Test func `options of its keys`() throws {
        let folder = try TemporaryFolder()
        let key = try SigningKey("k", .p256)
        let good = try folder.write(try key.privatePEM(), to: "AuthKey_KEY1234567.p8")
        let rsa = try folder.write(try SigningKey.shared().privatePEM(), to: "rsa.pem")
        for arguments in [
            ["apple", "--team", "ABCDE12345"], ["apple", "--key", "KEY1234567=\(good)"],
            ["apple", "--team", "short", "--key", "KEY1234567=\(good)"],
            ["apple", "--team", "ABCDE12345", "--key", "key1234567=\(good)"],
            ["apple", "--team", "ABCDE12345", "--key", "KEY1234567"],
            ["apple", "--team", "ABCDE12345", "--key", "KEY1234567=\(folder.file("none"))"],
            ["apple", "--team", "ABCDE12345", "--key", "KEY1234567=\(rsa)"],
            ["apple", "--team", "ABCDE12345", "--key", "KEY1234567=\(good)", "--key", "KEY1234567=\(good)"],
            ["apple", "--refresh-limit", "-1"], ["apple", "--refresh-limit", "many"],
            ["wechat", "--refresh-limit", "1"], ["wechat", "--team", "ABCDE12345", "--key", "KEY1234567=\(good)"],
        ] {
            let result = try run(try Executable.martlet(), ["simulate"] + arguments)
            #expect(result.ending == .exited(64) && !result.errorOutput.isEmpty, "\(arguments): \(result)")
        }
        let simulator = try RunningSimulator(["apple", "--team=ABCDE12345", "--key=KEY1234567=\(good)"])
        #expect(!simulator.page.contains("/simulator/private-key"))
        try simulator.stop()
    }
}
