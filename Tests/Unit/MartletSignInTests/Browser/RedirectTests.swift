import MartletBrowser
import MartletConfig
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletCore
@testable import MartletResponder
@testable import MartletSignIn

/// The arguments of a URL.
func arguments(_ url: String?) -> [String: String] {
    let query = (url ?? "").split(separator: "?", maxSplits: 1).last ?? ""
    var arguments: [String: String] = [:]
    for pair in query.split(separator: "&") {
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        arguments[String(parts[0])] = parts.count > 1 ? String(parts[1]) : ""
    }
    return arguments
}

@Suite struct `Signing in at another site` {
    /// Begins a sign-in and returns its state.
    private func start(_ browser: Browser, _ provider: String = "site", to target: String = "/home") async -> String {
        let reply = await browser.get("/auth/start/\(provider)?return_to=\(Browser.encode(target))")
        #expect(reply.status == 302)
        return arguments(reply.location)["state"] ?? ""
    }

    @Test func `goes there and back`() async throws {
        let stand = BrowserStand()
        let browser = stand.browser()
        let start = await browser.get("/auth/start/site?return_to=/home")
        let url = arguments(start.location)
        #expect(start.status == 302 && start.location?.hasPrefix("https://site.example/authorize?") == true)
        #expect(url["redirect_uri"] == "https%3A%2F%2Fapp.example%2Fauth%2Fcallback%2Fsite")
        let cookie = try #require(start.setCookies.first)
        #expect(cookie.firstMatch(of: /^__Host-martlet-start-[0-9a-f]{16}=[A-Za-z0-9_-]+;/) != nil)
        #expect(cookie.hasSuffix("; Path=/; Secure; HttpOnly; SameSite=None; Max-Age=600"))
        browser.site = "cross-site"
        let back = await browser.get("/auth/callback/site?user=ann&state=\(url["state"] ?? "")")
        #expect(back.outcome == "303 /home")
        // For as long as the same way back gets the same response.
        let kept = try #require(back.setCookies.last)
        #expect(kept.hasPrefix("__Host-martlet-start-") && kept.hasSuffix("; SameSite=None; Max-Age=10"))
        #expect(await browser.get("/auth/session")["provider"] == "site")
        let verifier = try #require(stand.site.script.value.verifiers.first)
        #expect(Base64URL.encode(SHA256.digest(Array(verifier.utf8))) == url["code_challenge"])
    }

    @Test func `comes back with a form of the other site`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        let state = await start(browser, "frame")
        browser.site = "cross-site"
        #expect(await browser.post("/auth/callback/frame", [("state", state), ("user", "ann")]).outcome == "303 /home")
        #expect(browser.session != nil)
    }

    @Test func `accepts each state once, of this browser, this provider and this time`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        let state = await start(browser)
        let thief = Browser(browser)
        let callback = "/auth/callback/site?user=ann&state="
        func outcome(_ browser: Browser, _ target: String) async -> String {
            let reply = await browser.get(target)
            #expect(reply.status == 200 || !reply.page.contains("cookie_"))
            return reply.outcome
        }
        #expect(await outcome(stand.browser(), callback + state) == "400 browser.attempt_unknown")
        #expect(await outcome(browser, callback + String(repeating: "a", count: 64)) == "400 browser.attempt_unknown")
        #expect(await outcome(browser, "/auth/callback/site?user=ann") == "400 redirect.state_mismatch")
        #expect(await outcome(browser, "\(callback)\(state)&state=\(state)") == "400 redirect.repeated_field")
        #expect(
            await browser.post("/auth/callback/frame", [("state", state)]).outcome == "400 browser.attempt_provider")
        // The attempt was presented at the wrong provider, and is used up.
        #expect(await outcome(browser, callback + state) == "400 browser.attempt_unknown")
        let second = await start(browser)
        let copy = Browser(browser)
        #expect(await outcome(browser, callback + second) == "303 /home")
        let session = browser.session
        #expect(await outcome(browser, callback + second) == "303 /home" && browser.session == session)
        #expect(await outcome(copy, callback + second + "&more") == "400 browser.attempt_unknown")
        #expect(thief.session == nil && copy.session == nil)
        stand.advance(.seconds(31))
        #expect(await outcome(copy, callback + second) == "400 browser.attempt_unknown")
        let late = await start(browser)
        stand.advance(.seconds(600))
        #expect(await outcome(browser, callback + late) == "400 browser.attempt_expired")
    }

    @Test func `gets the same response for the same way back`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        let state = await start(browser)
        let other = Browser(browser)
        let callback = "/auth/callback/site?user=ann&state=\(state)"
        #expect(await browser.get(callback).outcome == "303 /home")
        stand.advance(.seconds(9))
        #expect(await other.get(callback).outcome == "303 /home")
        #expect(browser.session != nil && browser.session == other.session)
    }

    @Test func `gets the same response for the same way back at the same moment`() async throws {
        let stand = BrowserStand()
        let browser = stand.browser()
        // The site accepts its code once, and takes as long as the second needs to come.
        let gate = Gate()
        stand.site.script.withLock { $0.single = gate }
        let state = await start(browser)
        let callback = "/auth/callback/site?user=ann&state=\(state)"
        let cookie = browser.cookies.map { "\($0.key)=\($0.value)" }.joined(separator: "; ")
        let fields: [(name: String, value: String)] = [("Cookie", cookie), ("Sec-Fetch-Mode", "navigate")]
        let server = stand.stand
        async let first = server.send("GET", callback, fields: fields)
        async let second = server.send("GET", callback, fields: fields)
        defer { gate.open() }
        try await eventually("one waits for the other") { server.endpoints.flights.waiters == 1 }
        gate.open()
        let replies = await [first, second]
        #expect(replies.map(\.outcome) == ["303 /home", "303 /home"] && stand.site.script.value.completed == 1)
        #expect(replies[0].setCookies.first?.hasPrefix("__Host-martlet=mct_") == true)
        #expect(replies[0].setCookies.first == replies[1].setCookies.first)
    }

    @Test func `goes on if the browser has signed in meanwhile`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        let states = [await start(browser, to: "/one"), await start(browser, to: "/two")]
        #expect(
            await browser.get("/auth/callback/site?user=ann&state=\(states[0])").outcome == "303 /one")
        // Used up by whatever failed, too late, or unknown: the browser is signed in.
        stand.site.script.withLock { $0.error = .rejected("site.code_used") }
        let failed = await browser.get("/auth/callback/site?user=ann&state=\(states[1])")
        #expect(failed.outcome == "303 /two")
        stand.site.script.withLock { $0.error = nil }
        let unknown = await browser.get("/auth/callback/site?user=ann&state=\(String(repeating: "a", count: 64))")
        #expect(unknown.outcome == "303 /" && browser.session != nil)
        // A sign-in that the session asked for itself has to succeed.
        let again = await start(browser, to: "/fresh")
        #expect(await browser.get("/auth/callback/site?state=\(again)").outcome == "400 site.no_user")
        let program = await browser.get("/auth/callback/site?state=a", [("Sec-Fetch-Mode", "cors")])
        #expect(program.status == 400)
    }

    @Test func `asks the site for what the page demands, and for what the link says`() async {
        let stand = BrowserStand(stepUp: { target in
            target.text.hasPrefix("/fresh") ? StepUpRequirement(maximumAge: 60, acr: "mfa") : nil
        })
        let browser = stand.browser()
        func request(_ query: String) async -> RedirectRequest? {
            _ = await browser.get("/auth/start/site?\(query)")
            return stand.site.script.value.requests.last
        }
        let plain = await request("return_to=/home&login_hint=a%40b.example")
        #expect(plain?.maximumAge == nil && plain?.level == nil && plain?.confirms == false)
        #expect(plain?.arguments["login_hint"] == "a@b.example")
        let fresh = await request("return_to=/fresh/x%3Fa%3D1")
        #expect(fresh?.maximumAge == .seconds(60) && fresh?.level == "mfa" && fresh?.confirms == false)
        #expect(await request("confirm=true&return_to=/home")?.confirms == true)
        let page = await browser.get("/auth/sign-in?confirm=true&return_to=/fresh")
        #expect(page.page.contains("href=\"/auth/start/site?confirm=true&amp;return_to=/fresh\""))
    }

    @Test func `begins without the page where there is one provider to go to`() async {
        let here = SourceLocation(file: "gw.yaml", line: 1, column: 1)
        let browser = BrowserStand { $0.start = Located("site", at: here) }.browser()
        let first = await browser.get("/auth/sign-in?return_to=/home%3Fa%3D1&login_hint=x")
        #expect(first.outcome == "302 /auth/start/site?login_hint=x&return_to=/home%3Fa%3D1")
        let begun = await browser.get(first.location ?? "")
        let state = arguments(begun.location)["state"] ?? ""
        // Cancelled or failed, it is the page.
        let failed = await browser.get("/auth/callback/site?state=\(state)")
        #expect(failed.outcome == "400 site.no_user" && failed.page.contains("href=\"/auth/start/site"))
        #expect(await browser.get("/auth/sign-in?result=account_deleted").status == 200)
        await browser.signIn()
        #expect(await browser.get("/auth/sign-in?return_to=/x").location?.hasPrefix("/auth/start/site") == true)
    }

    @Test func `stores nothing for whoever comes back without an identity`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        for outcome in ["error=denied", "", "user=", "error=denied&client=native"] {
            let state = await start(browser)
            let before = stand.stand.store.writes
            let first = await browser.get("/auth/callback/site?\(outcome)&state=\(state)")
            #expect([200, 400].contains(first.status) && stand.stand.store.writes == before, "\(outcome)")
        }
        // What a site cannot decide now may come again, and is not used up by it.
        let state = await start(browser)
        stand.site.script.withLock { $0.error = .malformed("site.malformed") }
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(state)").outcome == "400 site.malformed")
        stand.site.script.withLock { $0.error = nil }
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(state)").outcome == "303 /home")
    }

    @Test func `a network that fills its share of the store is the outage of no other`() async throws {
        let stand = BrowserStand()
        let network = try #require(ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [255, 255, 10, 0, 0, 1]))
        let marks = stand.stand.store.partition(.browsers, for: network.workOwner)
        await #expect(throws: StoreError.self) {
            for number in 0..<100_000 { try await marks.set([1], for: "\(number)", lifetime: .seconds(60)) }
        }
        let crowd = stand.browser()
        crowd.network = network
        let state = await start(crowd)
        let full = await crowd.get("/auth/callback/site?user=ann&state=\(state)")
        #expect(full.outcome == "429 store.share_used_up" && full.field("Retry-After") == "5")
        let browser = stand.browser()
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(await start(browser))").outcome == "303 /home")
        stand.advance(.seconds(60))
        #expect(await crowd.get("/auth/callback/site?user=ann&state=\(state)").outcome == "303 /home")
    }

    @Test func `says that it was cancelled, that it failed, or that it is unavailable`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        let cancelled = await browser.get("/auth/callback/site?error=denied&state=\(await start(browser))")
        #expect(cancelled.outcome == "200" && cancelled.page.contains("/auth/start/site?return_to=/home"))
        let failed = await browser.get("/auth/callback/site?state=\(await start(browser))")
        #expect(failed.outcome == "400 site.no_user" && failed.page.contains("r1"))
        let state = await start(browser)
        stand.site.script.withLock { $0.error = .unavailable("site.unavailable", retryAfter: .seconds(7)) }
        let unavailable = await browser.get("/auth/callback/site?user=ann&state=\(state)")
        #expect(unavailable.outcome == "503 site.unavailable" && unavailable.field("Retry-After") == "7")
        #expect(await browser.get("/auth/start/site").outcome == "503 site.unavailable")
        #expect(browser.session == nil)
        stand.site.script.withLock { $0.error = nil }
        let kept = await start(browser)
        stand.stand.store.isUnavailable = true
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(kept)").status == 503)
        stand.stand.store.isUnavailable = false
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(kept)").outcome == "303 /home")
    }

    @Test func `costs the store nothing once its network has failed too often`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        var statuses: [Int] = []
        for _ in 0..<200 {
            let reply = await browser.get("/auth/callback/site?state=\(await start(browser))")
            statuses.append(reply.status)
            if reply.status == 429 { break }
        }
        #expect(statuses.last == 429 && statuses.dropLast().allSatisfy { $0 == 400 })
        let completed = stand.site.script.value.completed
        let kept = await start(browser)
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(kept)").status == 429)
        #expect(stand.site.script.value.completed == completed)
        stand.advance(.seconds(599))
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(kept)").outcome == "303 /home")
    }

    @Test func `keeps five attempts of two tabs`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        var states: [String] = []
        for index in 0..<6 {
            states.append(await start(browser, to: "/tab\(index)"))
            stand.advance(.seconds(1))
        }
        #expect(browser.cookies.keys.filter { $0.hasPrefix("__Host-martlet-start-") }.count == 5)
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(states[0])").status == 400)
        for index in [5, 1] {
            let reply = await browser.get("/auth/callback/site?user=ann&state=\(states[index])")
            #expect(reply.outcome == "303 /tab\(index)")
        }
    }

    @Test func `keeps every attempt of tabs that begin together, with its long page`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        // Each begins with the cookies that the browser had before: none.
        var begun: [(state: String, target: String)] = []
        for index in 0..<10 {
            let target = "/tab\(index)?q=" + String(repeating: "a", count: 700)
            let tab = stand.browser()
            begun.append((await start(tab, to: target), target))
            for (name, value) in tab.cookies { browser.set(name, value) }
        }
        for (state, target) in begun {
            let reply = await browser.get("/auth/callback/site?user=ann&state=\(state)")
            #expect(reply.outcome == "303 \(target)")
        }
        // Two of the longest.
        let long = { (name: String) in "/\(name)?q=" + String(repeating: "a", count: 2000) }
        let other = stand.browser()
        let states = [await start(other, to: long("one")), await start(other, to: long("two"))]
        #expect(
            await other.get("/auth/callback/site?user=ann&state=\(states[0])").location == long("one"))
        #expect(
            await other.get("/auth/callback/site?user=ann&state=\(states[1])").location == long("two"))
    }

    @Test func `deletes cookies that hold no attempt`() async {
        let browser = BrowserStand().browser()
        browser.set("__Host-martlet-start-0123456789abcdef", "AAAA")
        browser.set("__Host-martlet-start", "AAAA")
        let state = await start(browser)
        #expect(browser.cookies.count == 1)
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(state)").outcome == "303 /home")
    }

    @Test func `takes nothing but a form by POST`() async {
        let browser = BrowserStand().browser()
        let state = await start(browser, "frame")
        for type in ["text/plain", "application/json", "multipart/form-data; boundary=x"] {
            let reply = await browser.post(
                "/auth/callback/frame", [("state", state), ("user", "ann")], [("Content-Type", type)])
            #expect(reply.status == 415, "\(type)")
        }
        #expect(await browser.post("/auth/callback/frame", [("state", state), ("user", "ann")]).status == 303)
    }

    @Test func `names the method of a callback`() async {
        let browser = BrowserStand().browser()
        for (path, allow) in [("site", "GET"), ("frame", "POST")] {
            let reply =
                allow == "GET"
                ? await browser.post("/auth/callback/\(path)", [("state", "a")])
                : await browser.get("/auth/callback/\(path)?state=a")
            #expect(reply.status == 405 && reply.field("Allow") == allow && reply.page.contains("<html"))
        }
        #expect(await browser.get("/auth/sign-out").field("Allow") == "POST")
    }

    @Test func `ends the session of another person`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        await browser.signIn()
        let ann = Browser(browser)
        let state = await start(browser, "frame")
        // A form of another site comes without the session's cookie.
        browser.forget("__Host-martlet")
        #expect(await browser.post("/auth/callback/frame", [("state", state), ("user", "bob")]).status == 303)
        #expect(await ann.get("/auth/session").status == 401)
        #expect(await browser.get("/auth/session")["subject"] == "usr_2")
    }

    @Test func `continues by a page where a redirect would lose the cookie`() async {
        let browser = BrowserStand { $0.cookie.sameSite = .strict }.browser()
        let reply = await browser.get("/auth/callback/site?user=ann&state=\(await start(browser))")
        #expect(reply.status == 200 && reply.field("Refresh") == "0; url=/home")
        #expect(reply.page.contains("href=\"/home\"") && browser.session != nil)
    }

    @Test func `returns only to where it may`() async {
        let browser = BrowserStand().browser()
        for (target, location) in [
            ("/home?a=1", "/home?a=1"), ("//evil.example", "/"), ("https://evil.example/", "/"),
            ("https://other.example/x", "https://other.example/x"), ("/auth/sign-out", "/"), ("/\\evil.example", "/"),
        ] {
            let state = await start(browser, to: target)
            let reply = await browser.get("/auth/callback/site?user=ann&state=\(state)")
            #expect(reply.location == location, "\(target)")
        }
    }
}

@Suite struct `An app that signs in by a browser` {
    private let verifier = String(repeating: "v", count: 43)
    private var challenge: String { Base64URL.encode(SHA256.digest(Array(verifier.utf8))) }

    private func start(_ browser: Browser, _ more: String = "&state=a%20b") async -> Stand.Reply {
        await browser.get(
            "/auth/start/site?client=native&redirect=com.example.app%3A%2Fcb&code_challenge=\(challenge)\(more)")
    }

    private func code(_ stand: BrowserStand) async throws -> String {
        let browser = stand.browser()
        let state = arguments(await start(browser).location)["state"] ?? ""
        let back = await browser.get("/auth/callback/site?user=ann&state=\(state)")
        #expect(back.status == 302 && back.location?.hasPrefix("com.example.app:/cb?code=moc_") == true)
        #expect(back.location?.hasSuffix("&state=a%20b") == true && browser.session == nil)
        return try #require(arguments(back.location)["code"])
    }

    private func exchange(
        _ stand: BrowserStand, _ code: String, _ verifier: String, proof: String? = nil
    ) async -> Stand.Reply {
        await stand.stand.send(
            "POST", "/auth/token", type: Stand.form,
            Array("grant_type=authorization_code&code=\(code)&code_verifier=\(verifier)".utf8),
            fields: proof.map { [("DPoP", $0)] } ?? [])
    }

    @Test func `uses its code only with the proof of a key, where that is required`() async throws {
        let proofs = ScriptedProofs()
        let stand = BrowserStand(requiring: proofs)
        let code = try await code(stand)
        #expect(await exchange(stand, code, verifier).summary == "401 dpop_proof_invalid dpop.missing")
        let used = await exchange(stand, code, verifier, proof: "bad 1")
        #expect(used.summary == "401 dpop_proof_invalid dpop.malformed")
        proofs.isUnavailable = true
        let unmarked = await exchange(stand, code, verifier, proof: "\(ScriptedProofs.ours) 1")
        #expect(unmarked.summary == "503 auth_unavailable dpop.store_unavailable")
        proofs.isUnavailable = false
        let tokens = await exchange(stand, code, verifier, proof: "\(ScriptedProofs.ours) 2")
        #expect(tokens.status == 200 && tokens["token_type"] == "DPoP")
        let access = try #require(tokens["access_token"])
        #expect(await stand.stand.send("GET", "/auth/session", bearer: access).status == 401)
        let document = await stand.stand.send("GET", "/.well-known/oauth-authorization-server").object
        #expect(document["dpop_signing_alg_values_supported"]?.array?.first == "ES256")
        let other = await BrowserStand().stand.send("GET", "/.well-known/oauth-authorization-server").object
        #expect(!other.has("dpop_signing_alg_values_supported") && other.has("issuer"))
    }

    @Test func `a browser needs no proof where one is required`() async throws {
        let stand = BrowserStand(requiring: ScriptedProofs())
        let browser = stand.browser()
        let state = arguments(await browser.get("/auth/start/site").location)["state"] ?? ""
        #expect(await browser.get("/auth/callback/site?user=ann&state=\(state)").status == 303)
        #expect(browser.session != nil)
    }

    @Test func `gets tokens for its code and verifier, once`() async throws {
        let stand = BrowserStand()
        let code = try await code(stand)
        let tokens = await exchange(stand, code, verifier)
        #expect(tokens.status == 200 && tokens["provider"] == "site" && tokens.object["new_account"] == true)
        let access = try #require(tokens["access_token"])
        #expect(await stand.stand.send("GET", "/auth/session", bearer: access).status == 200)
        #expect(await exchange(stand, code, verifier).summary == "401 credential_invalid signin.bad_code")
    }

    @Test func `gets none with another verifier, too late, or with a code of its own`() async throws {
        let stand = BrowserStand()
        let first = try await code(stand)
        let other = String(repeating: "w", count: 43)
        #expect(await exchange(stand, first, other).summary == "401 credential_invalid signin.bad_code")
        #expect(await exchange(stand, first, verifier).status == 401)
        let second = try await code(stand)
        stand.advance(.seconds(60))
        #expect(await exchange(stand, second, verifier).status == 401)
        let made = "moc_" + Base64URL.encode([UInt8](repeating: 1, count: 32))
        #expect(await exchange(stand, made, verifier).status == 401)
        #expect(await exchange(stand, "", verifier).status == 401)
        let missing = await stand.stand.send("POST", "/auth/token", type: Stand.form, Array("code=a".utf8))
        #expect(missing.summary == "400 request_invalid signin.missing_member")
        let grant = await stand.stand.send("POST", "/auth/token", type: Stand.form, Array("grant_type=password".utf8))
        #expect(grant.summary == "400 request_invalid signin.bad_grant_type")
    }

    @Test func `gets an error if the user cancels`() async {
        let browser = BrowserStand().browser()
        let state = arguments(await start(browser).location)["state"] ?? ""
        let back = await browser.get("/auth/callback/site?error=denied&state=\(state)")
        #expect(back.outcome == "302 com.example.app:/cb?error=access_denied&state=a%20b")
    }

    @Test func `gets an error if its sign-in fails`() async {
        let stand = BrowserStand()
        let browser = stand.browser()
        func back(_ error: AuthenticationError?, _ query: String = "user=ann") async -> String? {
            let state = arguments(await start(browser).location)["state"] ?? ""
            stand.site.script.withLock { $0.error = error }
            let reply = await browser.get("/auth/callback/site?\(query)&state=\(state)")
            #expect(reply.status == 302 && browser.cookies.isEmpty)
            stand.site.script.withLock { $0.error = nil }
            return arguments(reply.location)["error"]
        }
        #expect(await back(nil, "") == "server_error")
        #expect(await back(.rejected("site.bad")) == "server_error")
        #expect(await back(.unavailable("site.unavailable", retryAfter: .seconds(7))) == "temporarily_unavailable")
        #expect(await back(AuthenticationError("site.denied", .denied)) == "access_denied")
        stand.site.script.withLock { $0.error = .unavailable("site.unavailable", retryAfter: .seconds(7)) }
        let begun = await start(browser)
        #expect(begun.location == "com.example.app:/cb?error=temporarily_unavailable&state=a%20b")
        #expect(begun.outcome.hasSuffix("site.unavailable"))
    }

    @Test func `is rejected for wrong arguments`() async {
        let browser = BrowserStand().browser()
        #expect(await start(browser, "&code_challenge_method=plain").outcome == "400 browser.code_challenge_invalid")
        #expect(
            await start(browser, "&state=\(String(repeating: "s", count: 513))").outcome == "400 browser.state_too_long"
        )
        let long = await browser.get(
            "/auth/start/site?client=native&redirect=com.example.app:/cbx&code_challenge=\(challenge)")
        #expect(long.outcome == "400 browser.redirect_unknown" && long.location == nil)
        let bare = await browser.get("/auth/start/site?client=native&redirect=com.example.app:/cb")
        #expect(bare.outcome == "400 browser.code_challenge_invalid")
        #expect(await browser.get("/auth/start/site?client=other").status == 400)
    }
}
