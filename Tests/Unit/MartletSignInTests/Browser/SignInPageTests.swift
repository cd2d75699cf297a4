import MartletBrowser
import MartletConfig
import MartletCore
import MartletPages
import MartletProvider
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSignIn

@Suite struct `The page for signing in` {
    @Test func `has a button for each provider, the form, and fields that protect it`() async {
        let stand = BrowserStand()
        let reply = await stand.browser().get("/auth/sign-in?return_to=/home%3Fa%3D1")
        #expect(reply.status == 200 && reply.field("Content-Type") == "text/html; charset=utf-8")
        for part in [
            "href=\"/auth/start/site?return_to=/home%3Fa%3D1\"", "href=\"/auth/start/frame?return_to=/home%3Fa%3D1\"",
            "action=\"/auth/sign-in\"", "name=\"return_to\" value=\"/home?a=1\"",
        ] { #expect(reply.page.contains(part), "\(part)") }
        #expect(!Browser.token(in: reply).isEmpty)
        let policy = reply.field("Content-Security-Policy") ?? ""
        #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
        // The page that follows may redirect to anywhere, and browsers would stay here.
        #expect(!policy.contains("form-action"))
        #expect(reply.field("Cache-Control") == "no-store" && reply.field("Referrer-Policy") == "same-origin")
        #expect(reply.setCookies.count == 1)
        let cookie = reply.setCookies.first ?? ""
        #expect(
            cookie.hasPrefix("__Host-martlet-form=") && cookie.hasSuffix("; Path=/; Secure; HttpOnly; SameSite=Lax"))
    }

    @Test(arguments: [
        ("zh-CN,zh;q=0.9", "", "zh-Hans"), ("zh-HK", "", "zh-Hant"), ("fr", "", "en"),
        ("en", "?lang=zh-Hant", "zh-Hant"),
    ])
    func `is in the browser's language, or the chosen one`(field: String, query: String, language: String) async {
        let reply = await BrowserStand().browser().get("/auth/sign-in\(query)", [("Accept-Language", field)])
        #expect(reply.page.contains("<html lang=\"\(language)\""))
    }

    @Test func `gives a session for a name and a password`() async throws {
        let stand = BrowserStand()
        let browser = stand.browser()
        let reply = await browser.signIn(to: "/home")
        #expect(reply.outcome == "303 /home")
        let cookie = try #require(reply.setCookies.first)
        #expect(cookie.hasPrefix("__Host-martlet=mct_"))
        #expect(cookie.hasSuffix("; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=2592000"))
        let session = await browser.get("/auth/session")
        #expect(session.status == 200 && session["provider"] == "password" && session["subject"] == "usr_1")
        #expect(await browser.get("/auth/sign-in?return_to=/x").outcome == "303 /x")
        #expect(await browser.get("/auth/sign-in").outcome == "303 /")
    }

    @Test func `ends the session that another replaces`() async {
        let browser = BrowserStand().browser()
        await browser.signIn()
        let old = Browser(browser)
        let page = await browser.get("/auth/sign-in?confirm=true")
        #expect(page.status == 200)
        let form = [("username", "ann"), ("password", "correct horse"), ("csrf", Browser.token(in: page))]
        #expect(await browser.post("/auth/sign-in", form).status == 303)
        #expect(browser.session != old.session)
        #expect(await old.get("/auth/session").summary == "401 credential_invalid session.unknown")
        #expect(await browser.get("/auth/session").status == 200)
    }

    @Test func `clears a cookie whose session has ended`() async {
        let browser = BrowserStand().browser()
        await browser.signIn()
        let other = Browser(browser)
        #expect(await browser.post("/auth/sign-out", []).outcome == "303 /")
        let reply = await other.get("/auth/sign-in")
        #expect(reply.status == 200 && other.session == nil)
    }

    @Test func `says what is wrong, to people and to programs`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        let wrong = await browser.signIn("ann\"><b>", password: "wrong")
        #expect(wrong.outcome == "401 password.wrong" && wrong.field("WWW-Authenticate") != nil)
        #expect(wrong.page.contains("value=\"ann&quot;&gt;&lt;b&gt;\"") && !wrong.page.contains("<b>"))
        #expect(browser.session == nil)
        stand.passwords.error.withLock {
            $0 = AuthenticationError("password.throttled", .throttled, retryAfter: .seconds(90))
        }
        let throttled = await browser.signIn()
        #expect(throttled.outcome == "429 password.throttled" && throttled.field("Retry-After") == "90")
        stand.passwords.error.withLock { $0 = .unavailable("password.unavailable", retryAfter: .seconds(3)) }
        let unavailable = await browser.signIn()
        #expect(unavailable.outcome == "503 password.unavailable" && unavailable.field("Retry-After") == "3")
        let page = await browser.get("/auth/sign-in")
        let form = [("username", "ann"), ("password", "correct horse"), ("csrf", Browser.token(in: page))]
        let program = await browser.post("/auth/sign-in", form, [("Sec-Fetch-Mode", "cors")])
        #expect(program.summary == "503 auth_unavailable password.unavailable")
    }

    @Test func `rejects forms of others`() async {
        let stand = BrowserStand()
        let (browser, other) = (stand.browser(), stand.browser())
        let form = [("username", "ann"), ("password", "correct horse")]
        let without = await stand.browser().post("/auth/sign-in", form)
        #expect(without.outcome == "403 browser.form_token_invalid" && without.page.contains("ookies"))
        let token = Browser.token(in: await browser.get("/auth/sign-in"))
        await other.get("/auth/sign-in")
        let foreign = await other.post("/auth/sign-in", form + [("csrf", token)])
        #expect(foreign.outcome == "403 browser.form_token_invalid")
        #expect(other.session == nil && !Browser.token(in: foreign).isEmpty)
        #expect(await browser.post("/auth/sign-in", form).status == 403)
        #expect(await browser.post("/auth/sign-in", form + [("csrf", token + "A")]).status == 403)
        stand.advance(.seconds(12 * 3600))
        #expect(await browser.post("/auth/sign-in", form + [("csrf", token)]).status == 403)
        let fresh = Browser.token(in: await browser.get("/auth/sign-in"))
        #expect(await browser.post("/auth/sign-in", form + [("csrf", fresh)]).status == 303)
    }

    @Test func `is shown whatever cookies a browser has, and deletes those that cannot be used`() async {
        let browser = BrowserStand().browser()
        for (cookie, name) in [
            ("__Host-martlet=a; __Host-martlet=b", "__Host-martlet"), ("__Host-martlet=\"a\"", "__Host-martlet"),
            ("__Host-martlet=", "__Host-martlet"), ("__Host-martlet-form=a b", "__Host-martlet-form"),
            ("__Host-martlet-start= a", "__Host-martlet-start"),
        ] {
            let reply = await browser.get("/auth/sign-in", [("Cookie", cookie)])
            #expect(reply.status == 200 && reply.page.contains("<form"), "\(cookie) \(reply.outcome)")
            #expect(reply.setCookies.first?.hasPrefix("\(name)=; Path=/") == true)
        }
        let program = await browser.get(
            "/auth/session", [("Cookie", "__Host-martlet=a; __Host-martlet=a"), ("Sec-Fetch-Mode", "cors")])
        #expect(program.summary == "400 request_invalid browser.cookie_repeated")
    }

    @Test func `takes no form of another kind, and none that another site sends`() async {
        let browser = BrowserStand().browser()
        let token = Browser.token(in: await browser.get("/auth/sign-in"))
        let form = [("username", "ann"), ("password", "correct horse"), ("csrf", token)]
        for type in ["text/plain", "application/json", "multipart/form-data; boundary=x"] {
            let reply = await browser.post("/auth/sign-in", form, [("Content-Type", type)])
            #expect(reply.outcome == "415 signin.unsupported_media_type", "\(type)")
        }
        for site in ["cross-site", "same-site"] {
            let reply = await browser.post("/auth/sign-in", form, [("Sec-Fetch-Site", site)])
            #expect(reply.outcome == "403 cross_site")
        }
        #expect(browser.session == nil)
        #expect(await browser.post("/auth/sign-in", form).status == 303)
    }

    @Test func `is not there without browsers`() async {
        let stand = Stand()
        for path in ["sign-in", "sign-out", "signed-out", "start/apple", "callback/apple", "token", "account/delete"] {
            #expect(await stand.send("GET", "/auth/\(path)").status == 404, "\(path)")
        }
    }

    @Test func `rejects methods and paths that it does not have`() async {
        let browser = BrowserStand().browser()
        #expect(await browser.get("/auth/sign-out").status == 405)
        #expect(await browser.post("/auth/start/site", []).status == 405)
        #expect(await browser.post("/auth/callback/site", [("state", "a")]).status == 405)
        #expect(await browser.get("/auth/callback/frame?state=a").status == 405)
        #expect(await browser.get("/auth/start/nothing").outcome == "404 signin.unknown_provider")
        #expect(await browser.get("/auth/start/password").status == 404)
        #expect(await browser.get("/auth/sign-up").status == 404)
    }

    @Test func `is unavailable without the shared key`() async {
        let stand = BrowserStand()
        stand.stand.store.isUnavailable = true
        let reply = await stand.browser().get("/auth/sign-in")
        #expect(reply.outcome == "503 store.unavailable" && reply.field("Retry-After") == "1")
        stand.stand.store.isUnavailable = false
        #expect(await stand.browser().get("/auth/sign-in").status == 200)
        stand.stand.store.isUnavailable = true
        #expect(await stand.browser().get("/auth/sign-in").status == 200)
    }
}

@Suite struct `Registering in a browser` {
    @Test func `creates a user and a session`() async {
        let stand = BrowserStand { $0.registers = true }
        let browser = stand.browser()
        #expect(await browser.get("/auth/sign-in").page.contains("href=\"/auth/sign-up"))
        let page = await browser.get("/auth/sign-up?return_to=/home")
        #expect(page.status == 200)
        let form = [("username", "Bob"), ("return_to", "/home"), ("csrf", Browser.token(in: page))]
        let short = await browser.post("/auth/sign-up", form + [("password", "short")])
        #expect(short.outcome == "400 password.too_short" && short.page.contains("10"))
        let reply = await browser.post("/auth/sign-up", form + [("password", "a long password")])
        #expect(reply.outcome == "303 /home")
        #expect(await browser.get("/auth/session")["provider"] == "password")
        let again = stand.browser()
        let token = Browser.token(in: await again.get("/auth/sign-up"))
        let taken = await again.post(
            "/auth/sign-up", [("username", "BOB"), ("password", "another password"), ("csrf", token)])
        #expect(taken.outcome == "409 accounts.duplicate_user")
        let invalid = await again.post(
            "/auth/sign-up", [("username", "a b"), ("password", "another password"), ("csrf", token)])
        #expect(invalid.status == 400)
        #expect(await again.post("/auth/sign-up", form + [("password", "a long password")]).status == 403)
    }
}
