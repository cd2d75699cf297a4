import MartletCore
import Testing

@testable import MartletBrowser

/// The verifier and the challenge of RFC 7636, appendix B.
private let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
private let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

private func request(
    redirect: String? = "com.example.app:/cb", challenge: String? = challenge, method: String? = nil,
    state: String? = nil
) -> (request: AppRequest?, code: String) {
    do throws(BrowserError) {
        let request = try AppRequest(
            redirect: redirect, challenge: challenge, method: method, state: state,
            redirects: [
                "com.example.app:/cb", "https://app.example.com/cb?x=1", "http://127.0.0.1/cb", "http://[::1]/cb?x=1",
                "http://localhost:5173/cb",
            ])
        return (request, "")
    } catch {
        return (nil, error.code.rawValue)
    }
}

@Suite struct `A code challenge` {
    @Test func `matches its verifier alone`() throws {
        let parsed = try CodeChallenge(challenge, method: "S256")
        #expect(parsed.matches(verifier) && parsed == CodeChallenge(verifier: verifier) && parsed.text == challenge)
        for other in [
            "", String(verifier.dropLast()), verifier + "a", "a" + verifier.dropFirst(), challenge,
            verifier.replacing("_", with: "+"),
        ] {
            #expect(!parsed.matches(other))
        }
    }

    @Test(arguments: [42, 43, 128, 129])
    func `takes verifiers of 43 to 128 characters`(_ count: Int) {
        let long = String(repeating: "~", count: count)
        #expect(CodeChallenge(verifier: long).matches(long) == (43...128).contains(count))
    }

    @Test(
        arguments: [
            (challenge, nil, true), (challenge, "S256", true), (challenge, "plain", false), (challenge, "s256", false),
            (challenge, "", false), (nil, "S256", false), ("", nil, false), (String(challenge.dropLast()), nil, false),
            (challenge + "=", nil, false), (challenge + "A", nil, false), (verifier + "A", nil, false),
        ] as [(String?, String?, Bool)])
    func `is a SHA-256 in base64url`(_ text: String?, _ method: String?, _ isValid: Bool) {
        #expect(((try? CodeChallenge(text, method: method)) != nil) == isValid)
    }
}

@Suite struct `A request of an app` {
    @Test func `ends at a listed redirect`() throws {
        let (app, _) = request(state: "a b&c=\u{E9}")
        let code = try OneTimeCode()
        #expect(
            app?.location(code: code) == "com.example.app:/cb?code=\(code.text)&state=a%20b%26c%3D%C3%A9")
        #expect(
            app?.location(error: "access_denied") == "com.example.app:/cb?error=access_denied&state=a%20b%26c%3D%C3%A9")
        let web = request(redirect: "https://app.example.com/cb?x=1").request
        #expect(web?.location(error: "access_denied") == "https://app.example.com/cb?x=1&error=access_denied")
    }

    @Test(
        arguments: [
            nil, "", "com.example.app:/CB", "com.example.app:/cb/", "com.example.app:/cb?x", "com.example.app:/cb#x",
            "http://127.0.0.1:0/cb", "http://127.0.0.1:65536/cb", "http://127.0.0.1:/cb", "http://127.0.0.1:80/cb/",
            "http://127.0.0.1:80@evil.example/cb", "http://127.0.0.1.evil.example/cb", "http://127.0.0.1:80",
            "http://127.0.0.2:80/cb", "http://[::1]:80/cb", "http://localhost:5174/cb", "https://127.0.0.1:80/cb",
            "https://app.example.com/cb", "javascript:alert(1)", "com.example.app:/c\u{62}\u{301}",
        ] as [String?])
    func `has no other redirect`(_ redirect: String?) {
        #expect(request(redirect: redirect).code == "browser.redirect_unknown")
    }

    @Test(arguments: [
        "http://127.0.0.1/cb", "http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb", "http://[::1]:8080/cb?x=1",
        "http://localhost:5173/cb",
    ])
    func `ends at any port of a loopback address`(_ redirect: String) {
        let app = request(redirect: redirect).request
        #expect(app?.location(error: "e").hasPrefix(redirect) == true)
    }

    @Test func `needs a challenge, and a short state`() {
        #expect(request(challenge: nil).code == "browser.code_challenge_invalid")
        #expect(request(method: "plain").code == "browser.code_challenge_invalid")
        #expect(request(state: String(repeating: "s", count: 512)).code == "")
        #expect(request(state: String(repeating: "s", count: 513)).code == "browser.state_too_long")
        #expect(request(state: "").request?.location(error: "e") == "com.example.app:/cb?error=e&state=")
    }
}

@Suite struct `A one-time code` {
    @Test func `has one form`() throws {
        let code = try OneTimeCode()
        #expect(code.text.utf8.count == 47 && code.text.hasPrefix("moc_"))
        #expect(OneTimeCode(code.text)?.storeKey == code.storeKey && code.storeKey.utf8.count == 64)
        #expect(!code.storeKey.contains(code.text.dropFirst(4)))
        let other = try OneTimeCode().text
        #expect(other != code.text)
        for text in [
            "", "moc_", String(code.text.dropLast()), code.text + "A", "MOC_" + code.text.dropFirst(4),
            "mat_" + code.text.dropFirst(4), code.text + "=", " " + code.text,
        ] {
            #expect(OneTimeCode(text) == nil)
        }
    }
}
