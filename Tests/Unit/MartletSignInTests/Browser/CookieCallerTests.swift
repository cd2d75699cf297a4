import MartletProvider
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSignIn

@Suite struct `A caller with a session cookie` {
    private let program: [(name: String, value: String)] = [("Sec-Fetch-Mode", "cors")]

    @Test func `uses the endpoints, but not beside another credential`() async {
        let browser = BrowserStand().browser()
        await browser.signIn()
        #expect(await browser.get("/auth/sessions", program).status == 200)
        let two = await browser.get("/auth/session", program + [("Authorization", "Bearer mat_x")])
        #expect(two.summary == "400 request_invalid auth.two_credentials")
    }

    @Test(
        arguments: [
            ("cross-site", nil, 403), ("same-site", nil, 403), (nil, nil, 403), (nil, "https://app.example", 204),
            (nil, "https://evil.example", 403), ("same-origin", nil, 204), ("none", nil, 204),
        ] as [(String?, String?, Int)])
    func `changes nothing for another site`(site: String?, origin: String?, status: Int) async {
        let browser = BrowserStand().browser()
        await browser.signIn()
        var fields: [(name: String, value: String)] = program
        fields.append(("Sec-Fetch-Site", site ?? ""))
        if site == nil { fields.removeLast() }
        if let origin { fields.append(("Origin", origin)) }
        browser.site = ""
        let reply = await browser.post("/auth/logout", [], fields)
        // A browser without the field sends an empty one here, which counts as another site.
        if site == nil, origin == nil {
            #expect(reply.status == 403)
        } else {
            #expect(reply.status == status, "\(reply.summary)")
        }
    }

    @Test func `gets a new cookie when the token is due, and after a change`() async throws {
        let stand = BrowserStand()
        let browser = stand.browser()
        await browser.signIn()
        let first = browser.session
        #expect(await browser.get("/auth/session", program).status == 200 && browser.session == first)
        stand.advance(.seconds(900))
        let reply = await browser.get("/auth/session", program)
        #expect(reply.status == 200 && browser.session != first && reply.setCookies.count == 1)
        let second = browser.session
        let changed = await browser.post(
            "/auth/password", [("current_password", "correct horse"), ("new_password", "battery staple")], program)
        #expect(changed.status == 204 && browser.session != second)
        #expect(await browser.get("/auth/session", program).status == 200)
        let out = await browser.post("/auth/logout", [], program)
        #expect(out.status == 204 && browser.session == nil)
    }

    @Test func `signs out, and everywhere`() async {
        let stand = BrowserStand()
        let (phone, desk) = (stand.browser(), stand.browser())
        await phone.signIn()
        await desk.signIn()
        let copy = Browser(desk)
        desk.site = "cross-site"
        #expect(await desk.post("/auth/sign-out", []).outcome == "403 cross_site")
        desk.site = "same-origin"
        #expect(await desk.post("/auth/sign-out", [("all", "maybe")]).status == 400)
        #expect(await desk.post("/auth/sign-out", [("return_to", "/bye")]).outcome == "303 /bye")
        #expect(desk.session == nil)
        #expect(await copy.get("/auth/session", program).status == 401)
        #expect(await phone.get("/auth/session", program).status == 200)
        let again = stand.browser()
        await again.signIn()
        #expect(await again.post("/auth/sign-out", [("all", "true")]).status == 303)
        #expect(await phone.get("/auth/session", program).status == 401)
        #expect(await phone.get("/auth/signed-out").status == 200)
        let left = await phone.post("/auth/sign-out?return_to=/auth/signed-out", [("csrf", "x")])
        #expect(left.outcome == "303 /auth/signed-out")
    }
}

@Suite struct `The account's page` {
    private func page(_ browser: Browser) async -> (reply: Stand.Reply, token: String) {
        let reply = await browser.get("/auth/account")
        return (reply, Browser.token(in: reply))
    }

    @Test func `asks for a session, and is JSON for programs`() async {
        let browser = BrowserStand().browser()
        #expect(await browser.get("/auth/account").outcome == "302 /auth/sign-in?return_to=/auth/account")
        await browser.signIn()
        #expect(await browser.get("/auth/account").field("Content-Type") == "text/html; charset=utf-8")
        let json = await browser.get("/auth/account", [("Sec-Fetch-Mode", "cors")])
        #expect(json.field("Content-Type") == "application/json")
    }

    @Test func `links and unlinks an identity`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        await browser.signIn()
        let (reply, token) = await page(browser)
        #expect(reply.page.contains("action=\"/auth/account/link/frame\""))
        let start = await browser.post("/auth/account/link/frame", [("csrf", token)])
        #expect(start.status == 303 && start.location?.hasPrefix("https://site.example/authorize?") == true)
        let state = arguments(start.location)["state"] ?? ""
        let session = browser.session
        browser.forget("__Host-martlet")
        browser.site = "cross-site"
        let back = await browser.post("/auth/callback/frame", [("state", state), ("user", "ann1")])
        let target = back.location ?? ""
        #expect(back.status == 303 && target.hasPrefix("/auth/account?result=linked&provider=frame&proof="))
        browser.set("__Host-martlet", session ?? "")
        // Whoever makes such a link up has nothing renewed.
        for made in ["", "&proof=", "&proof=AAAA", "&proof=" + (arguments(target)["proof"] ?? "").reversed()] {
            let shown = await browser.get("/auth/account?result=linked&provider=frame\(made)")
            #expect(shown.status == 200 && browser.session == session, "\(made)")
        }
        browser.site = "same-origin"
        let renewed = await browser.get(target)
        #expect(renewed.status == 200 && browser.session != session)
        let (linked, next) = await page(browser)
        #expect(linked.page.contains("action=\"/auth/account/unlink/frame\""))
        #expect(stand.frame.script.value.purposes.contains { if case .link = $0 { true } else { false } })
        let unlinked = await browser.post("/auth/account/unlink/frame", [("csrf", next)])
        #expect(unlinked.outcome == "303 /auth/account?result=unlinked&provider=frame")
        let last = await browser.post("/auth/account/unlink/password", [("csrf", next)])
        #expect(last.status == 409)
    }

    @Test func `links nothing to a session that has ended, and no identity of another account`() async {
        let stand = BrowserStand()
        let (browser, other) = (stand.browser(), stand.browser())
        let state = arguments(await other.get("/auth/start/site").location)["state"] ?? ""
        await other.get("/auth/callback/site?user=bob&state=\(state)")
        await browser.signIn()
        let token = await page(browser).token
        func link(_ provider: String) async -> String {
            arguments(await browser.post("/auth/account/link/\(provider)", [("csrf", token)]).location)["state"] ?? ""
        }
        let taken = await browser.get("/auth/callback/site?user=bob&state=\(await link("site"))")
        #expect(taken.outcome == "303 /auth/account?result=identity_taken&provider=site")
        let cancelled = await browser.get("/auth/callback/site?error=denied&state=\(await link("site"))")
        #expect(cancelled.location == "/auth/account?result=link_cancelled&provider=site")
        let late = await link("site")
        await browser.post("/auth/sign-out", [])
        #expect(await browser.get("/auth/callback/site?user=eve&state=\(late)").status == 400)
    }

    @Test func `changes the password, ends sessions, and rejects forms of others`() async {
        let stand = BrowserStand()
        let (browser, other) = (stand.browser(), stand.browser())
        await other.signIn()
        await browser.signIn()
        let (reply, token) = await page(browser)
        let id = reply.page.firstMatch(of: #/action="/auth/account/sessions/(ses_[^"]+)"/#).map { String($0.output.1) }
        #expect(await browser.post("/auth/account/sessions/\(id ?? "")", []).status == 403)
        let ended = await browser.post("/auth/account/sessions/\(id ?? "")", [("csrf", token)])
        #expect(ended.outcome == "303 /auth/account?result=session_ended")
        #expect(await other.get("/auth/session").status == 401)
        let wrong = await browser.post(
            "/auth/account/password", [("csrf", token), ("current_password", "x"), ("new_password", "battery staple")])
        #expect(wrong.status == 401 && wrong.page.contains("<form"))
        let short = await browser.post(
            "/auth/account/password",
            [("csrf", token), ("current_password", "correct horse"), ("new_password", "short")])
        #expect(short.status == 400 && short.page.contains("10"))
        let before = browser.session
        let changed = await browser.post(
            "/auth/account/password",
            [("csrf", token), ("current_password", "correct horse"), ("new_password", "battery staple")])
        #expect(changed.outcome == "303 /auth/account?result=password_changed" && browser.session != before)
        browser.site = "cross-site"
        #expect(await browser.post("/auth/account/sessions/x", [("csrf", token)]).outcome == "403 cross_site")
        browser.site = "same-origin"
        await other.signIn("ann", password: "battery staple")
        let foreign = Browser.token(in: await other.get("/auth/account"))
        #expect(await browser.post("/auth/account/sessions/x", [("csrf", foreign)]).status == 403)
    }
}
