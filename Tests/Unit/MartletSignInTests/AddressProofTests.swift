import MartletConfig
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletResponder
@testable import MartletSignIn

private let ada = "ada@example.com"

/// Runs a test with a provider of these rules, and another one whose identities can be linked.
private func withStranger(
    _ provider: SelfServingProvider, _ body: (SelfServiceStand, ScriptedProvider) async throws -> Void
) async throws {
    let scripted = Box<ScriptedProvider?>(nil)
    try await withSelfService([provider]) { setup in
        let other = ScriptedProvider(clock: setup.clock)
        scripted.withLock { $0 = other }
        setup.providers.append(ProviderHandle(other, name: "apple"))
    } _: { service in
        try await body(service, try #require(scripted.value))
    }
}

@Suite struct `The first proof of an address` {
    /// A stranger makes a user of the address, and links an identity.
    private func occupy(_ service: SelfServiceStand) async throws -> String {
        #expect(await service.register(#"{"email":"\#(ada)","password":"correct horse"}"#).status == 204)
        let token = try await service.stand.login("password", ada)
        let linked = await service.stand.post("/auth/link/apple", bearer: token, #"{"proof":"stranger"}"#)
        #expect(linked.status == 204)
        return token
    }

    @Test func `takes away what was there before it`() async throws {
        try await withStranger(SelfServingProvider(verifies: false)) { service, _ in
            let stranger = try await occupy(service)
            service.stand.time.advance(seconds: 5)
            #expect(await service.forget(ada).status == 202)
            #expect(try await service.reset(service.token()).status == 204)
            let owner = try await service.subject("password", ada)
            service.stand.time.advance(seconds: 1)
            #expect(try await service.subject("apple", "stranger") != owner)
            #expect(await service.stand.send("GET", "/auth/session", bearer: stranger).status == 401)
        }
    }

    @Test func `takes nothing away when it is not the first`() async throws {
        try await withStranger(SelfServingProvider()) { service, _ in
            #expect(await service.register(#"{"email":"\#(ada)","password":"correct horse"}"#).status == 202)
            let verification = #"{"token":"\#(try await service.token())","password":"correct horse"}"#
            #expect(await service.stand.post("/auth/register/verify", verification).status == 204)
            let token = try await service.stand.login("password", ada)
            #expect(await service.stand.post("/auth/link/apple", bearer: token, #"{"proof":"ada"}"#).status == 204)
            service.stand.time.advance(seconds: 70)
            #expect(await service.forget(ada).status == 202)
            #expect(try await service.reset(service.token()).status == 204)
            let owner = try await service.subject("password", ada)
            #expect(try await service.subject("apple", "ada") == owner)
        }
    }

    @Test func `brings the password that counts`() async throws {
        try await withStranger(SelfServingProvider()) { service, _ in
            #expect(await service.register(#"{"email":"\#(ada)","password":"strangers horse"}"#).status == 202)
            let token = try await service.token()
            let none = await service.stand.post("/auth/register/verify", #"{"token":"\#(token)"}"#)
            #expect(none.response.failure?.bodyErrors.first?.pointer == "/password")
            let short = await service.stand.post("/auth/register/verify", #"{"token":"\#(token)","password":"x"}"#)
            #expect(short.status == 400)
            let verification = #"{"token":"\#(token)","password":"owners horse"}"#
            #expect(await service.stand.post("/auth/register/verify", verification).status == 204)
            #expect(try await service.user(ada)?.hash == "hash of owners horse")
        }
    }

    @Test func `outlives a link that is under way`() async throws {
        try await withStranger(SelfServingProvider(verifies: false)) { service, apple in
            #expect(await service.register(#"{"email":"\#(ada)","password":"correct horse"}"#).status == 204)
            let stranger = try await service.stand.login("password", ada)
            service.stand.time.advance(seconds: 5)
            #expect(await service.forget(ada).status == 202)
            let token = try await service.token()
            // The session has been checked for the last time, and nothing but the store is left.
            apple.script.withLock { $0.interruption = { _ = await service.reset(token) } }
            let late = await service.stand.post("/auth/link/apple", bearer: stranger, #"{"proof":"stranger"}"#)
            #expect(late.status == 401, "\(late.summary)")
            apple.script.withLock { $0.interruption = nil }
            let owner = try await service.subject("password", ada)
            #expect(try await service.subject("apple", "stranger") != owner)
        }
    }

    @Test func `overtakes a login with the old password, also the first one`() async throws {
        let provider = SelfServingProvider(verifies: false)
        try await withStranger(provider) { service, _ in
            #expect(await service.register(#"{"email":"\#(ada)","password":"correct horse"}"#).status == 204)
            #expect(await service.forget(ada).status == 202)
            let token = try await service.token()
            provider.interruption.withLock { $0 = { _ = await service.reset(token) } }
            let late = await service.stand.post("/auth/login/password", #"{"proof":"\#(ada)"}"#)
            #expect(late.summary == "401 credential_invalid signin.overtaken")
            #expect(service.stand.sessions.entries.isEmpty)
            service.stand.time.advance(seconds: 1)
            _ = try await service.stand.login("password", ada)
        }
    }
}

/// Runs a test with the pages of browsers.
private func withPages(
    _ provider: SelfServingProvider, _ body: (SelfServiceStand) async throws -> Void
) async throws {
    try await withSelfService([provider]) { setup in
        var configuration = BrowserConfiguration.sample
        configuration.registers = true
        setup.browser = .sample(setup, configuration)
    } _: { service in
        try await body(service)
    }
}

@Suite struct `A page where users register` {
    private func signUp(
        _ service: SelfServiceStand, _ name: String, _ more: [(String, String)] = []
    ) async -> Stand.Reply {
        let browser = Browser(service.stand)
        let token = Browser.token(in: await browser.get("/auth/sign-up"))
        return await browser.post("/auth/sign-up", [("username", name), ("csrf", token)] + more)
    }

    @Test(arguments: ["password", nil])
    func `sends a mail to an address, whoever has it`(member: String?) async throws {
        try await withPages(SelfServingProvider()) { service in
            let more = member.map { [($0, "strangers horse")] } ?? []
            let reply = await signUp(service, "Ada@Example.com", more)
            #expect(reply.status == 202 && reply.setCookies.allSatisfy { !$0.hasPrefix("__Host-martlet=") })
            #expect(try await service.user(ada) == nil)
            #expect(try await service.mails().map(\.template) == [.register])
            let token = try await service.token()
            let verification = #"{"token":"\#(token)","password":"owners horse"}"#
            #expect(await service.stand.post("/auth/register/verify", verification).status == 204)
            service.stand.time.advance(seconds: 70)
            let again = await signUp(service, ada, more)
            #expect(again.status == 202 && again.page.count == reply.page.count)
            #expect(try await service.mails().map(\.template) == [.register, .alreadyRegistered])
        }
    }

    @Test func `takes no address for a name where addresses are proved otherwise`() async throws {
        for provider in [SelfServingProvider(registers: false), SelfServingProvider(verifies: false)] {
            try await withPages(provider) { service in
                for name in ["ada@example.com", "Ada@Example.com", "ada@local", "@"] {
                    let reply = await signUp(service, name, [("password", "correct horse")])
                    #expect(reply.outcome == "400 signin.address_as_name", "\(name)")
                    let user = try await service.user(ada)
                    #expect(user == nil)
                }
                _ = await signUp(service, "ada", [("password", "correct horse")])
                let user = try await service.user("ada")
                #expect(user != nil)
            }
        }
    }
}

@Suite struct `The pages of links in mails` {
    private func send(
        _ browser: Browser, _ target: String, _ form: [(String, String)]
    ) async -> Stand.Reply {
        let token = Browser.token(in: await browser.get(target))
        return await browser.post(target, form + [("csrf", token)])
    }

    @Test func `register a user`() async throws {
        try await withPages(SelfServingProvider(requiresName: true)) { service in
            let browser = Browser(service.stand)
            let nameless = await send(browser, "/auth/sign-up", [("username", ada)])
            #expect(nameless.status == 400 && nameless.page.contains("id=\"name\""))
            let members = [("username", ada), ("name", "Ada"), ("locale", "en")]
            let requested = await send(browser, "/auth/sign-up", members)
            #expect(requested.status == 202)
            let link = try #require(try await service.mails().last?.link)
            #expect(link.hasPrefix("https://app.example/auth/verify?token=mlt_"))
            let target = String(link.dropFirst("https://app.example".utf8.count))
            // A program that looks into the mail uses nothing up.
            for _ in 0..<3 { #expect(await Browser(service.stand).get(target).status == 200) }
            let token = ("token", String(target.split(separator: "=").last ?? ""))
            let forged = await browser.post("/auth/verify", [token, ("password", "correct horse")])
            #expect(forged.status == 403)
            let form = Browser.token(in: await browser.get(target))
            let short = await browser.post("/auth/verify", [token, ("csrf", form), ("password", "x")])
            #expect(short.status == 400 && short.page.contains("value=\"\(token.1)\""))
            let done = await browser.post("/auth/verify", [token, ("csrf", form), ("password", "correct horse")])
            #expect(done.outcome == "303 /auth/sign-in?result=registered")
            let user = try #require(try await service.user(ada))
            #expect(user.hash == "hash of correct horse" && user.claims["name"] == "Ada")
            let again = await browser.post("/auth/verify", [token, ("csrf", form), ("password", "correct horse")])
            #expect(again.outcome == "401 signin.bad_link")
        }
    }

    @Test func `replace a forgotten password`() async throws {
        try await withPages(SelfServingProvider(registers: false)) { service in
            let record = UserRecord(name: ada, key: ada, hash: "old", isDisabled: false)
            try await service.accounts.addUser(record, at: UnixTime(seconds: 0))
            let browser = Browser(service.stand)
            let known = await send(browser, "/auth/forgot", [("email", ada), ("locale", "en")])
            let unknown = await send(browser, "/auth/forgot", [("email", "bob@example.com"), ("locale", "en")])
            #expect(known.status == 202 && unknown.status == 202 && known.page.count == unknown.page.count)
            let target = "/auth/reset?token=\(try await service.token())"
            let form = Browser.token(in: await browser.get(target))
            let done = await browser.post(
                "/auth/reset",
                [("token", try await service.token()), ("csrf", form), ("new_password", "battery staple")])
            #expect(done.outcome == "303 /auth/sign-in?result=password_reset")
            #expect(try await service.user(ada)?.hash == "hash of battery staple")
            #expect(await browser.get("/auth/verify?token=mlt_x").status == 404)
        }
    }

    @Test(arguments: ["forgot", "reset?token=mlt_x", "verify?token=mlt_x"])
    func `are not there where nothing is mailed`(name: String) async {
        #expect(await BrowserStand().browser().get("/auth/\(name)").status == 404)
    }
}
