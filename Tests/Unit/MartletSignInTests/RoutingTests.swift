import MartletAccounts
import MartletConfig
import MartletCore
import MartletJSON
import MartletSession
import MartletTesting
import Testing

@testable import MartletProvider
@testable import MartletResponder
@testable import MartletSignIn

@Suite struct `Paths and methods` {
    static let unknown = [
        "/auth", "/auth/", "/auth/x", "/authx/nonce", "/auth/nonce/", "/auth/nonce/x", "/auth/login", "/auth/sessions/",
        "/auth/sessions/a/b", "/auth/link", "/auth/link/", "/auth/NONCE", "/.well-known/jwks.json",
        "/.well-known/apple-app-site-association", "/.well-known/change-password",
        "/.well-known/oauth-authorization-server", "/.well-known/x", "/",
        "/auth/n\u{212A}",
    ]

    @Test(arguments: unknown)
    func `that are unknown get 404`(path: String) async {
        for method in ["GET", "POST", "OPTIONS"] {
            let reply = await Stand().send(method, path)
            #expect(reply.summary == "404 no_route signin.unknown_endpoint")
        }
    }

    static let methods: [(String, String)] = [
        ("/auth/login/apple", "POST"), ("/auth/nonce", "POST"), ("/auth/refresh", "POST"), ("/auth/revoke", "POST"),
        ("/auth/token", "POST"), ("/auth/logout", "POST"),
        ("/auth/session", "GET, HEAD"), ("/auth/sessions", "GET, HEAD"), ("/auth/sessions/ses_1", "DELETE"),
        ("/auth/identities", "GET, HEAD"), ("/auth/account", "GET, HEAD, DELETE"),
        ("/auth/profile", "PATCH"), ("/auth/apple/notifications", "POST"),
        ("/auth/link/apple", "POST, DELETE"), ("/auth/password", "POST"), ("/auth/reauthenticate", "POST"),
        ("/auth/openapi.json", "GET, HEAD"),
        ("/.well-known/jwks.json", "GET, HEAD"),
        ("/.well-known/oauth-authorization-server", "GET, HEAD"),
        ("/.well-known/apple-app-site-association", "GET, HEAD"),
        ("/.well-known/change-password", "GET, HEAD"), ("/auth/register", "POST"), ("/auth/register/verify", "POST"),
        ("/auth/password/forgot", "POST"), ("/auth/password/reset", "POST"),
    ]

    static func stand() -> Stand {
        Stand { setup in
            setup.providers.append(
                ProviderHandle(
                    SelfServingProvider(
                        PasswordSelfService(
                            registration: .init(verifiesAddress: true, requiresName: false, link: nil),
                            reset: .init(link: nil))),
                    name: "selfserving"))
            setup.browser = .sample(setup)
            setup.keySet = ["keys": []]
            setup.wellKnown.webCredentialApps = ["ABCDE12345.com.example.app"]
            setup.wellKnown.changePasswordURL = "https://example.com/password?from=app"
        }
    }

    @Test(arguments: methods)
    func `that do not match get 405`(path: String, allow: String) async {
        let allowed = allow.split(separator: ", ").map(String.init)
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", "PROPFIND"]
        where !allowed.contains(method) {
            let reply = await Self.stand().send(method, path)
            #expect(reply.summary == "405 method_not_allowed router.method_not_allowed", "\(method)")
            #expect(reply.response.failure?.allow == allow)
        }
    }

    @Test func `move with the configuration`() async {
        let stand = Stand { $0.configuration.path = "/a/b" }
        #expect(await stand.send("POST", "/a/b/nonce").status == 200)
        #expect(await stand.send("POST", "/auth/nonce").status == 404)
    }

    @Test func `are claimed as they are configured`() {
        var sessions = SessionsConfiguration()
        var wellKnown = WellKnownConfiguration()
        let bare = SignInMounts(sessions, wellKnown, hasKeySet: false)
        #expect(bare.base == "/auth" && bare.paths.isEmpty)
        sessions.path = "/a/b"
        wellKnown.changePasswordURL = "/account"
        let more = SignInMounts(sessions, wellKnown, hasKeySet: true)
        #expect(more.base == "/a/b")
        #expect(more.paths == ["/.well-known/jwks.json", "/.well-known/change-password"])
    }

    @Test func `include the well-known documents`() async {
        let stand = Self.stand()
        let keys = await stand.send("GET", "/.well-known/jwks.json")
        #expect(keys.status == 200 && keys.object == ["keys": []])
        let apps = await stand.send("GET", "/.well-known/apple-app-site-association")
        #expect(apps.status == 200 && apps.field("Content-Type") == "application/json")
        #expect(apps.object == ["webcredentials": ["apps": ["ABCDE12345.com.example.app"]]])
        let redirect = await stand.send("GET", "/.well-known/change-password?to=https://evil.example")
        #expect(redirect.status == 303 && redirect.field("Location") == "https://example.com/password?from=app")
        for reply in [keys, apps, redirect] { #expect(reply.field("Cache-Control") == "no-store") }
    }

    @Test func `treat HEAD as GET`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let get = await stand.send("GET", "/auth/session", bearer: token)
        let head = await stand.send("HEAD", "/auth/session", bearer: token)
        #expect(head.status == 200 && head.response.body == get.response.body)
    }
}

@Suite struct `Web pages` {
    static let origin = "https://app.example.com"

    private func stand() -> Stand {
        Stand { $0.configuration.corsOrigins = ["https://other.example.com", Self.origin] }
    }

    private func ask(
        _ stand: Stand, _ method: String, _ path: String, origin: String, for wanted: String?
    ) async
        -> Stand.Reply
    {
        var fields = [(name: "origin", value: origin)]
        if let wanted { fields.append(("Access-Control-Request-Method", wanted)) }
        return await stand.send(method, path, fields: fields)
    }

    @Test func `of a configured origin may send a preflight`() async {
        let stand = stand()
        let reply = await ask(stand, "OPTIONS", "/auth/link/apple", origin: Self.origin, for: "POST")
        #expect(reply.status == 204 && reply.response.body.isEmpty)
        #expect(reply.field("Access-Control-Allow-Origin") == Self.origin)
        #expect(reply.field("Access-Control-Allow-Methods") == "POST, DELETE")
        #expect(reply.field("Access-Control-Allow-Headers") == "Authorization, Content-Type")
        #expect(reply.field("Vary") == "Origin" && reply.field("Access-Control-Allow-Credentials") == nil)
    }

    @Test(arguments: [
        "https://app.example.com.evil.example", "https://APP.example.com", "http://app.example.com", "null", "",
        "https://app.example.com:443", "https://app.example.com/", "*",
    ])
    func `of another origin are not allowed`(origin: String) async {
        let stand = stand()
        let preflight = await ask(stand, "OPTIONS", "/auth/nonce", origin: origin, for: "POST")
        #expect(preflight.summary == "405 method_not_allowed router.method_not_allowed")
        #expect(preflight.response.failure?.readableBy == nil)
        #expect(preflight.response.failure?.variesByOrigin == true)
        let reply = await ask(stand, "POST", "/auth/nonce", origin: origin, for: nil)
        #expect(reply.status == 200 && reply.field("Access-Control-Allow-Origin") == nil)
        #expect(reply.field("Vary") == "Origin")
    }

    @Test func `may read responses and failures`() async {
        let stand = stand()
        let reply = await ask(stand, "POST", "/auth/nonce", origin: Self.origin, for: nil)
        #expect(reply.status == 200 && reply.field("Access-Control-Allow-Origin") == Self.origin)
        #expect(reply.field("Vary") == "Origin")
        let failure = await ask(stand, "GET", "/auth/session", origin: Self.origin, for: nil)
        #expect(failure.status == 401 && failure.response.failure?.readableBy == Self.origin)
        let unknown = await ask(stand, "GET", "/auth/x", origin: Self.origin, for: nil)
        #expect(unknown.status == 404 && unknown.response.failure?.readableBy == Self.origin)
    }

    @Test func `are not allowed if none are configured`() async {
        let stand = Stand()
        let preflight = await ask(stand, "OPTIONS", "/auth/nonce", origin: Self.origin, for: "POST")
        #expect(preflight.status == 405 && preflight.response.failure?.variesByOrigin == false)
        let reply = await ask(stand, "POST", "/auth/nonce", origin: Self.origin, for: nil)
        #expect(reply.field("Vary") == nil && reply.field("Access-Control-Allow-Origin") == nil)
    }

    @Test func `with a preflight without a method, or with two origins, are not allowed`() async {
        let stand = stand()
        #expect(await ask(stand, "OPTIONS", "/auth/nonce", origin: Self.origin, for: nil).status == 405)
        let twice = await stand.send(
            "OPTIONS", "/auth/nonce",
            fields: [("Origin", Self.origin), ("Origin", Self.origin), ("Access-Control-Request-Method", "POST")])
        #expect(twice.status == 405)
    }
}
