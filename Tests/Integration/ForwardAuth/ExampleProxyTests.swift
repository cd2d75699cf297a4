import Foundation
import MartletTesting
import Testing

/// The examples for other proxies, with a real proxy between clients and an API.
@Suite struct `Checks of other proxies` {
    private static let routes = """
        - { name: public, match: { path: /public/** }, auth: none }
        - { name: read, match: { path: /read/**, methods: [GET] }, auth: none }
        - { name: closed, match: { path: /v1/** }, auth: { providers: [apple] } }
        """
    private static let identity = ["X-Auth-Subject", "X-Auth-Provider", "X-Auth-Email", "X-Auth-Assertion"]

    private static func withProxy(
        _ kind: ExampleProxy.Kind, _ body: (ExampleProxy, Gateway, ScriptedUpstream, AppleFixture) throws -> Void
    ) throws {
        try withAppleGateway(routes: routes, server: "trusted_proxies: [127.0.0.1/32]") { gateway, api, apple throws in
            let proxy = try ExampleProxy(kind, gateway: gateway.endpoint, api: api.endpoint)
            do { try body(proxy, gateway, api, apple) } catch {
                throw TestFailure("\(error)\n--- the proxy wrote:\n\(proxy.errors.suffix(3000))")
            }
        }
    }

    /// Checks a 401. nginx repeats the first challenge.
    private static func expectUnauthorized(
        _ response: HTTPMessage, _ code: String, at location: SourceLocation = #_sourceLocation
    ) {
        let note = Comment(rawValue: "\(response)")
        #expect(response.status == 401 && response.member("code") == code, note, sourceLocation: location)
        let error = code == "credential_missing" ? "" : #", error="invalid_token""#
        #expect(
            Set(response.all("WWW-Authenticate")) == [#"Bearer realm="martlet""# + error], note,
            sourceLocation: location)
    }

    /// Checks a 403.
    private static func expectForbidden(
        _ response: HTTPMessage, _ code: String, at location: SourceLocation = #_sourceLocation
    ) {
        let note = Comment(rawValue: "\(response)")
        #expect(response.status == 403 && response.member("code") == code, note, sourceLocation: location)
    }

    @Test(arguments: ExampleProxy.Kind.installed)
    func `let a request pass with the identity, and with no other`(_ kind: ExampleProxy.Kind) throws {
        try Self.withProxy(kind) { proxy, _, api, apple throws in
            let spoofed = Self.identity.map { ($0, "root") } + [("X_Auth_Subject", "root"), ("x-auth-other", "root")]
            let response = try proxy.exchange(
                "POST", "/v1/orders?x=1", spoofed + bearer(try apple.token()), body: Array("hello".utf8))
            #expect(response.status == 200 && response.text == "ok")
            let request = try api.onlyRequest()
            #expect(request.method == "POST" && request.target == "/v1/orders?x=1" && request.text == "hello")
            #expect(request.all("X-Auth-Subject") == ["apple:001234.0123456789abcdef0123456789abcdef.0001"])
            #expect(request.all("X-Auth-Provider") == ["apple"] && request["Authorization"] == nil)
            #expect(!Self.identity.contains { request.all($0).contains("root") })
            #expect(request["X_Auth_Subject"] == nil)
        }
    }

    @Test(arguments: ExampleProxy.Kind.installed)
    func `let no client take the identity away`(_ kind: ExampleProxy.Kind) throws {
        try Self.withProxy(kind) { proxy, _, api, apple throws in
            let fields = [("Connection", "close, X-Auth-Subject")] + bearer(try apple.token())
            let response = try proxy.exchange("GET", "/v1/x", fields)
            let subjects = api.requests.map { $0["X-Auth-Subject"] ?? "" }
            #expect(subjects.allSatisfy { $0.hasPrefix("apple:") }, "\(response)")
        }
    }

    @Test(arguments: ExampleProxy.Kind.installed)
    func `let a public request pass without any identity`(_ kind: ExampleProxy.Kind) throws {
        try Self.withProxy(kind) { proxy, _, api, _ throws in
            #expect(try proxy.exchange("GET", "/public/x", Self.identity.map { ($0, "root") }).status == 200)
            let request = try api.onlyRequest()
            #expect(Self.identity.allSatisfy { (request[$0] ?? "").isEmpty })
        }
    }

    @Test(arguments: ExampleProxy.Kind.installed)
    func `pass rejections on, with body and challenge`(_ kind: ExampleProxy.Kind) throws {
        try Self.withProxy(kind) { proxy, _, api, _ throws in
            Self.expectUnauthorized(try proxy.exchange("GET", "/v1/x"), "credential_missing")
            Self.expectUnauthorized(try proxy.exchange("GET", "/v1/x", bearer("e30.e30.e30")), "credential_invalid")
            Self.expectUnauthorized(
                try proxy.exchange("POST", "/v1/x", body: Array("hello".utf8)), "credential_missing")
            Self.expectForbidden(try proxy.exchange("GET", "/none"), "no_route")
            Self.expectForbidden(try proxy.exchange("POST", "/read/x", body: []), "method_not_allowed")
            #expect(api.requests.isEmpty)
        }
    }

    @Test(arguments: ExampleProxy.Kind.installed)
    func `are about the request that the proxy got, whatever a client says`(_ kind: ExampleProxy.Kind) throws {
        try Self.withProxy(kind) { proxy, _, api, _ throws in
            for field in ["X-Original-URI", "X-Forwarded-Uri", "X-Original-URL", "X-Rewrite-URL"] {
                Self.expectUnauthorized(
                    try proxy.exchange("GET", "/v1/x", [(field, "/public/x")]), "credential_missing")
            }
            for field in ["X-Original-Method", "X-Forwarded-Method"] {
                Self.expectForbidden(
                    try proxy.exchange("POST", "/read/x", [(field, "GET")], body: []), "method_not_allowed")
            }
            // Envoy resolves dots before it asks, and Traefik joins slashes; both forward what they asked about.
            for path in ["/public/..%2fv1/x", "/public/%2e%2e/v1/x"] + (kind == .traefik ? [] : ["/public//x"]) {
                #expect([400, 401, 404].contains(try proxy.exchange("GET", path).status), "\(path)")
            }
            #expect(api.requests.isEmpty)
            #expect(try proxy.exchange("GET", "/public/x", [("X-Original-URI", "/v1/x")]).status == 200)
            #expect(try api.onlyRequest()["X-Original-URI"] == nil)
        }
    }

    @Test(arguments: ExampleProxy.Kind.installed)
    func `are not for clients`(_ kind: ExampleProxy.Kind) throws {
        try Self.withProxy(kind) { proxy, gateway, api, apple throws in
            for path in ["/auth/check", "/auth/check/v1/x", "/auth/%63heck", "/auth/x/../check"] {
                let response = try proxy.exchange("GET", path, bearer(try apple.token()))
                #expect(response.status == 404 && response["X-Auth-Subject"] == nil, "\(path) \(response)")
            }
            #expect(api.requests.isEmpty && !gateway.log.contains { $0.text.contains(#""check":true"#) })
        }
    }

    @Test(arguments: ExampleProxy.Kind.installed)
    func `see no body`(_ kind: ExampleProxy.Kind) throws {
        try Self.withProxy(kind) { proxy, gateway, _, apple throws in
            let body = [UInt8](repeating: 0x61, count: 100_000)
            #expect(try proxy.exchange("POST", "/v1/x", bearer(try apple.token()), body: body).status == 200)
            try waitUntil("the check is logged") { gateway.log.contains { $0["route"] == "closed" } }
            // By gRPC the check itself is a body.
            let counts = gateway.log.filter { $0["route"] == "closed" }.compactMap { Int($0["bytes_in"] ?? "") }
            #expect(!counts.isEmpty && counts.allSatisfy { kind == .envoyGRPC ? $0 < 10_000 : $0 == 0 })
        }
    }

    @Test(arguments: ExampleProxy.Kind.installed)
    func `keep every request from the API while the gateway is down`(_ kind: ExampleProxy.Kind) throws {
        try Self.withProxy(kind) { proxy, gateway, api, apple throws in
            let token = bearer(try apple.token())
            #expect(try proxy.exchange("GET", "/v1/x", token).status == 200)
            let count = api.requests.count
            try gateway.stop()
            for path in ["/v1/x", "/public/x", "/none"] {
                #expect(try proxy.exchange("GET", path, token).status == kind.statusWithoutGateway, "\(path)")
            }
            #expect(api.requests.count == count)
        }
    }
}
