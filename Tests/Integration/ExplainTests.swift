import MartletJSON
import MartletTesting
import Testing

/// `martlet explain`: the same decision that a running gateway makes, with its reasons.
@Suite struct `Explanation` {
    static let routes = """
        - { name: public, match: { path: /public/** }, auth: none, upstream: api }
        - { name: maybe, match: { path: /maybe/** }, auth: { providers: [apple], mode: optional }, upstream: api }
        - { name: hosted, match: { hosts: [api.example.com], path: /v1/** }, auth: { providers: [apple] }, upstream: api }
        - name: staff
          match: { path: /staff/**, methods: [GET] }
          auth: { providers: [apple] }
          authorize: [{ claim: email_verified, equals: true }, { claim: email, equals: ada@example.com }]
          headers: { set: { X-User-Email: { claim: email } }, remove: [X-Debug] }
          rewrite: { strip_prefix: /staff }
          upstream: api
        - { name: closed, match: { path: /closed/** }, auth: { providers: [apple] }, upstream: api }
        - { name: old, match: { path: /old/** }, auth: none, redirect: { to: "/new$path?$query", status: 308 } }
        - { name: soon, match: { path: /soon }, auth: { providers: [apple] }, respond: { status: 503, body: soon } }
        """

    /// A simulated Apple and a configuration that trusts it.
    private struct Stand {
        let apple: AppleFixture
        let folder: TemporaryFolder

        init() throws {
            apple = try AppleFixture()
            folder = try TemporaryFolder()
            let config = GatewayConfig(
                endpoints: ["http://127.0.0.1:9"], providers: apple.provider(), routes: routes)
            try folder.write(config.text, to: "config.yaml")
        }

        /// Runs the command, whose exit code has to match its result, and which must not print the token.
        func explain(_ arguments: String..., token: String? = nil) throws -> String {
            var all = ["explain", "--config", folder.file("config.yaml")] + arguments
            if let token { all += ["--token", try folder.write(token + "\n", to: "token")] }
            let result = try run(try Executable.martlet(), all)
            let isForwarded = ["forwarded: ", "responds itself"].contains { result.output.contains($0) }
            let expected: Int32 = isForwarded ? 0 : result.output.contains("undecidable") ? 69 : 1
            guard result.ending == .exited(expected), result.output.contains("decision") else {
                throw TestFailure("\(arguments): \(result)")
            }
            if let token, token.utf8.count > 16 {
                for part in token.split(separator: ".") where result.description.contains(part) {
                    throw TestFailure("a part of the token in \(result)")
                }
            }
            return result.output
        }
    }

    private static func expect(
        _ text: String, _ parts: [String], not absent: [String] = [], at location: SourceLocation = #_sourceLocation
    ) {
        for part in parts { #expect(text.contains(part), "\(part) in\n\(text)", sourceLocation: location) }
        for part in absent { #expect(!text.contains(part), "\(part) in\n\(text)", sourceLocation: location) }
    }

    @Test func `a request that is allowed`() throws {
        let stand = try Stand()
        let token = try stand.apple.token { $0.claims["email"] = "\"ada@example.com\"" }
        Self.expect(
            try stand.explain("--path", "/staff/plans?x=1", token: token),
            [
                "not public: its path does not match", "not hosted: its host does not match", "staff matches",
                "provider 'apple' (apple) verifies the credential", "ok   signature", "ok   audience",
                "ok   authorize[1] email", "claim 'email' equals 'ada@example.com'",
                "X-User-Email: ada@example.com", "x-debug, by this route", "Authorization, which the gateway consumes",
                "api: http://127.0.0.1:9", "GET /plans", "forwarded",
            ], not: ["FAIL"])
    }

    @Test func `a login, whatever routes accept`() throws {
        let stand = try Stand()
        func explain(_ token: String, _ provider: String = "apple") throws -> CommandResult {
            try run(
                try Executable.martlet(),
                [
                    "explain", "--config", stand.folder.file("config.yaml"), "--login", provider, "--token",
                    try stand.folder.write(token + "\n", to: "token"),
                ])
        }
        let good = try explain(try stand.apple.token())
        #expect(good.ending == .exited(0) && good.output.contains("accepted, as far as the token goes"), "\(good)")
        let other = try explain(try stand.apple.token { $0.claims["aud"] = "\"com.example.other\"" })
        #expect(other.ending == .exited(1), "\(other)")
        let parts = ["failed [apple.bad_audience]", "com.example.other", "rejected: 401 credential_invalid"]
        Self.expect(other.output, parts)
        let unknown = try explain("x", "nope")
        #expect(unknown.ending == .exited(64) && unknown.errorOutput.contains("there are: apple"), "\(unknown)")
    }

    @Test func `a route that responds itself`() throws {
        let stand = try Stand()
        Self.expect(
            try stand.explain("--path", "/old/x?a=b"),
            ["old matches", "the route responds itself: 308, Location: /new/old/x?a=b"], not: ["adds", "upstream"])
        let token = try stand.apple.token()
        Self.expect(try stand.explain("--path", "/soon", token: token), ["the route responds itself: 503"])
        Self.expect(try stand.explain("--path", "/soon"), ["401 credential_missing"], not: ["responds itself"])
    }

    @Test func `how the upstream is spoken to, and what a request may upgrade to`() throws {
        let stand = try Stand()
        var config = GatewayConfig(
            endpoints: ["https://127.0.0.1:9"],
            upstream: "protocol: h2\ntls: { verify: false }\ntimeouts: { idle: 10m }",
            providers: stand.apple.provider(),
            routes: """
                - { name: none, match: { path: /none }, auth: none, upgrade: [], upstream: api }
                - { name: age, match: { path: /age }, auth: none, upgrade: { max_connection_age: 1h }, upstream: plain }
                - { name: grace, match: { path: /** }, upgrade: { protocols: [acme], close_on_expiry: 30s }, upstream: api }
                """)
        config.upstreams += "\nplain: { endpoints: [http://127.0.0.1:9], proxy_protocol: v2 }"
        try stand.folder.write(config.text, to: "config.yaml")
        Self.expect(
            try stand.explain("--path", "/none"),
            ["https://127.0.0.1:9", "HTTP/2, its certificate is not verified", "upgrades to nothing"])
        Self.expect(
            try stand.explain("--path", "/age"),
            ["receives the client's address", "upgrades to websocket; idle timeout 1m, maximum age 1h"],
            not: ["HTTP/2", "with the credential"])
        Self.expect(
            try stand.explain("--path", "/a", token: stand.apple.token()),
            ["upgrades to websocket or acme; idle timeout 5m", "closed 30s after the credential"])
    }

    @Test func `an endpoint of the gateway is left to it`() throws {
        let stand = try Stand()
        var config = GatewayConfig(endpoints: ["builtin:echo"], providers: stand.apple.provider())
        config.more = "sessions: {}\n"
        try stand.folder.write(config.text, to: "config.yaml")
        let result = try run(
            try Executable.martlet(),
            ["explain", "--config", stand.folder.file("config.yaml"), "--path", "/auth/account"])
        #expect(result.ending == .exited(0), "\(result)")
        Self.expect(
            result.output, ["decided by the gateway's own endpoint", "404 and 405 where it has no endpoint"],
            not: ["credentials are ignored"])
    }

    @Test func `a caller who may not`() throws {
        let stand = try Stand()
        Self.expect(
            try stand.explain("--path", "/staff/plans", token: try stand.apple.token()),
            [
                "ok   authorize[0] email_verified", "FAIL authorize[1] email ", "someone@example.com",
                "policy.claim_mismatch",
                "403 not_allowed",
            ], not: ["forwarded"])
    }

    @Test func `a token that is not good`() throws {
        let stand = try Stand()
        let rows: [(String, String, String)] = [
            (try stand.apple.token { $0.claims["aud"] = "\"other\"" }, "FAIL audience", "apple.bad_audience"),
            (try stand.apple.token { $0.claims["exp"] = JSONText(unixNow() - 5) }, "FAIL", "apple.expired"),
            (try stand.apple.token { $0.header["kid"] = "\"nobody\"" }, "FAIL key", "apple.unknown_key"),
            ("abc", "FAIL form", "apple.malformed"),
        ]
        for (token, check, code) in rows {
            for path in ["/closed/a", "/maybe/a"] {
                Self.expect(
                    try stand.explain("--path", path, token: token),
                    [check, code, "401 credential_invalid", "error=\"invalid_token\""], not: ["forwarded"])
            }
        }
        Self.expect(try stand.explain("--path", "/closed/a", token: "a b"), ["auth.malformed_authorization", "401 "])
        Self.expect(try stand.explain("--path", "/closed/a", token: "a\r\nX-Auth-Subject: b"), ["400 request_invalid"])
    }

    @Test func `no credential`() throws {
        let stand = try Stand()
        Self.expect(
            try stand.explain("--path", "/closed/a"),
            ["must be authenticated by apple", "401 credential_missing", "Bearer realm"])
        Self.expect(try stand.explain("--path", "/maybe/a"), ["may be authenticated by apple", "forwarded"])
        Self.expect(
            try stand.explain("--path", "/public/a"), ["any client", "forwarded", "X-Auth-*"], not: ["provider '"])
    }

    @Test func `no credential where a name and a password would do`() throws {
        let folder = try TemporaryFolder()
        try folder.write("ada:$2b$10$W75pWWhgdB/n//cDi2R1kOQxAVnhci8CX2LgmyMGgQ.JyTsJ9sw/y\n", to: "users")
        let config = GatewayConfig(
            endpoints: ["http://127.0.0.1:9"], providers: "staff: { kind: password, users: \"htpasswd:users\" }",
            routes: "- { name: all, auth: { providers: [staff] }, upstream: api }")
        try folder.write(config.text, to: "config.yaml")
        let result = try run(
            try Executable.martlet(), ["explain", "--config", folder.file("config.yaml"), "--path", "/x"])
        Self.expect(
            result.output,
            ["401 credential_missing", "WWW-Authenticate: Bearer realm", "WWW-Authenticate: Basic realm"])
    }

    @Test func `a request that no route takes`() throws {
        let stand = try Stand()
        Self.expect(try stand.explain("--path", "/nowhere"), ["no route matches", "404 no_route"])
        Self.expect(
            try stand.explain("--path", "/staff/a", "--method", "POST"),
            ["not staff: its method does not match", "405 method_not_allowed", "Allow: GET, HEAD"])
        Self.expect(try stand.explain("--path", "/v1/a", "--host", "API.example.com:80"), ["hosted matches"])
        Self.expect(try stand.explain("--path", "/v1/a", "--host", "example.com"), ["404 no_route"])
        Self.expect(try stand.explain("--path", "/public/a", "--method", "TRACE"), ["405 method_not_allowed"])
    }

    @Test func `a path and a head that are refused`() throws {
        let stand = try Stand()
        for path in ["/public/../closed", "/a//b", "/%2e%2e/a", "/a%2fb", "/a;b/..;/c", "/%00"] {
            Self.expect(
                try stand.explain("--path", path), ["400 request_invalid", "request.path_ambiguous"], not: ["matches"])
        }
        Self.expect(try stand.explain("--path", "/public/%61"), ["/public/a (normalized)", "public matches"])
        let broken = [
            ["--path", ""], ["--path", "/a b"], ["--path", "/a", "--host", ""], ["--path", "/a", "--method", "G T"],
            ["--path", "/a\r\nHost: x"], ["--path", "/\u{1B}[2J"],
        ]
        for arguments in broken {
            let result = try run(
                try Executable.martlet(), ["explain", "--config", stand.folder.file("config.yaml")] + arguments)
            #expect(result.ending == .exited(1) && result.output.contains("400 request_invalid"), "\(result)")
            #expect(!result.output.contains("\u{1B}"), "\(arguments)")
        }
        let long = "/" + String(repeating: "a", count: 9000)
        Self.expect(try stand.explain("--path", long), ["414 request_too_large"])
    }

    @Test func `an issuer that cannot be asked`() throws {
        let stand = try Stand()
        let token = try stand.apple.token()
        stand.apple.stop()
        Self.expect(
            try stand.explain("--path", "/closed/a", token: token),
            [
                "the provider is unavailable", "FAIL key", "apple.keys_unavailable", "undecidable",
                "503 auth_unavailable",
            ])
    }

    @Test func `a token from standard input`() throws {
        let stand = try Stand()
        let result = try run(
            try Executable.martlet(),
            ["explain", "--config", stand.folder.file("config.yaml"), "--path", "/closed/a", "--token", "-"],
            input: try stand.apple.token() + "\n")
        #expect(result.ending == .exited(0) && result.output.contains("forwarded"), "\(result)")
    }

    @Test func `what cannot be explained`() throws {
        let folder = try TemporaryFolder()
        let bad = try folder.write("version: 1\n", to: "bad.yaml")
        let martlet = try Executable.martlet()
        let refused = try run(martlet, ["explain", "--config", bad, "--path", "/a"])
        #expect(refused.ending == .exited(78) && refused.errorOutput.contains("bad.yaml:"), "\(refused)")
        #expect(try run(martlet, ["explain", "--config", bad]).ending == .exited(64))
        let stand = try Stand()
        let config = stand.folder.file("config.yaml")
        let missing = try run(martlet, ["explain", "--config", config, "--path", "/a", "--token", "/nonexistent"])
        #expect(missing.ending == .exited(64) && missing.errorOutput.contains("/nonexistent"), "\(missing)")
    }

    @Test func `a whole URL, and more header fields`() throws {
        let stand = try Stand()
        let token = try stand.apple.token()
        Self.expect(
            try stand.explain("--url", "https://api.example.com/v1/a?x=1", token: token),
            ["GET /v1/a?x=1 at api.example.com,", "hosted matches", "forwarded"])
        Self.expect(try stand.explain("--url", "http://api.example.com:8080"), ["GET / at api.example.com:8080"])
        Self.expect(
            try stand.explain(
                "--path", "/v1/a", "--header", "Host: api.example.com", "--header", "Authorization: Bearer \(token)",
                "--header", "X_Auth-Subject: root", "--header", "X-Kept: 1", "--header", "X-Forwarded-For: 9.9.9.9"),
            [
                "with Host, Authorization, X_Auth-Subject, X-Kept, X-Forwarded-For\n", "hosted matches",
                "of this request: X_Auth-Subject, X-Forwarded-For", "forwarded",
            ], not: [token, "without a credential"])
        // As a client that sends two of them.
        Self.expect(
            try stand.explain("--path", "/v1/a", "--header", "Host: a", "--host", "b"), ["400 request_invalid"])
        Self.expect(
            try stand.explain("--path", "/closed/a", "--header", "Authorization: Bearer abc", token: token),
            ["400 request_invalid"])
        Self.expect(
            try stand.explain("--path", "/closed/a", "--header", "Authorization: Digest abc"),
            ["auth.scheme_not_accepted"])
    }

    @Test func `a client without a token`() throws {
        let stand = try Stand()
        let folder = try TemporaryFolder()
        func explain(_ caller: String, _ path: String) throws -> String {
            try stand.explain("--path", path, "--as", try folder.write(caller, to: "caller.json"))
        }
        Self.expect(
            try explain(
                #"{"provider":"apple","subject":"usr_ann","claims":{"email_verified":true,"email":"ada@example.com"}}"#,
                "/staff/a"),
            ["provider 'apple'", "is usr_ann", "ok   authorize[0]", "X-User-Email: ada@example.com", "forwarded"])
        Self.expect(
            try explain(#"{"email_verified":true,"email":"eve@example.com"}"#, "/staff/a"),
            ["is apple:someone", "FAIL authorize[1] email ", "403 not_allowed"])
        Self.expect(try explain(#"{"provider":"other"}"#, "/staff/a"), ["401", "auth.provider_not_on_route"])
        Self.expect(try explain(#"{"provider":"other"}"#, "/public/a"), ["forwarded"])
        for broken in [
            "", "[]", "{", #"{"claims":1}"#, #"{"claims":{},"sub":"x"}"#, #"{"subject":1}"#, #"{"auth_time":"now"}"#,
        ] {
            let path = try folder.write(broken, to: "broken.json")
            let result = try run(
                try Executable.martlet(),
                ["explain", "--config", stand.folder.file("config.yaml"), "--path", "/staff/a", "--as", path])
            #expect(result.ending == .exited(64) && !result.errorOutput.isEmpty, "\(broken): \(result)")
        }
    }

    @Test func `as JSON`() throws {
        let stand = try Stand()
        func document(_ arguments: [String]) throws -> JSONObject {
            let result = try run(
                try Executable.martlet(),
                ["explain", "--config", stand.folder.file("config.yaml"), "--json"] + arguments)
            let limits = JSONLimits(maximumDepth: 16, maximumBytes: 1 << 20)
            let object = try #require(try JSON.parse(Array(result.output.utf8), limits: limits).object)
            let outcome = object["decision"]?.object?["outcome"]?.string
            #expect(result.ending == .exited(outcome == "forwarded" ? 0 : 1), "\(result)")
            return object
        }
        let token = try stand.folder.write(try stand.apple.token(), to: "token")
        let refused = try document(["--path", "/staff/a", "--token", token])
        #expect(refused["route"]?.object?["name"] == "staff" && refused["provider"]?.object?["name"] == "apple")
        let conditions = try #require(refused["conditions"]?.array)
        #expect(
            conditions.map { $0.object?["condition"]?.string } == ["authorize[0] email_verified", "authorize[1] email"])
        #expect(conditions.map { $0.object?["ok"]?.bool } == [true, false])
        #expect(refused["decision"]?.object?["status"] == 403 && refused["decision"]?.object?["code"] == "not_allowed")
        #expect(refused["decision"]?.object?["reason"] == "policy.claim_mismatch")
        let forwarded = try document(["--path", "/closed/a?b", "--token", token, "--header", "X-Auth-Email: me"])
        let headers = try #require(forwarded["headers"]?.array).map { $0.object?["name"]?.string }
        #expect(headers.contains("X-Auth-Subject") && headers.contains("X-Auth-Provider"))
        #expect(
            forwarded["removed_headers"] == ["X-Auth-Email"] && forwarded["upstream"]?.object?["path"] == "/closed/a")
        #expect(forwarded["principal"]?.object?["claims"]?.object?["email_verified"] == true)
        #expect(try document(["--path", "/nowhere"])["route"] == .null)
    }

    @Test func `wrong usage`() throws {
        let stand = try Stand()
        for arguments in [
            [], ["--url", "api.example.com/v1"], ["--url", "https://u@a/"], ["--url", "https://a/", "--path", "/"],
            ["--url", "https://a/", "--host", "a"], ["--path", "/", "--header", "nothing"],
            ["--path", "/", "--header", ": x"], ["--path", "/", "--as", "a", "--token", "b"],
            ["--path", "/", "--as", "a", "--header", "authorization: Basic eA=="],
        ] {
            let result = try run(
                try Executable.martlet(), ["explain", "--config", stand.folder.file("config.yaml")] + arguments)
            #expect(result.ending == .exited(64) && result.output.isEmpty, "\(arguments): \(result)")
        }
    }
}
