import MartletCore
import MartletCrypto
import Testing

@testable import MartletBrowser

private let start = UnixTime(seconds: 1_800_000_000)
private let seal = AttemptSeal(key: Secret([UInt8](repeating: 7, count: 32)))

private func attempt(
    _ provider: String = "apple", at now: UnixTime = start, _ destination: SignInAttempt.Destination = .page("/a")
) throws -> SignInAttempt {
    try SignInAttempt(provider: provider, purpose: .signIn, destination: destination, now: now)
}

private func app(state: String? = "s") throws -> SignInAttempt.Destination {
    .app(
        try AppRequest(
            redirect: "com.example.app:/cb", challenge: CodeChallenge(verifier: "v").text, method: nil, state: state,
            redirects: ["com.example.app:/cb"]))
}

private func page(_ attempt: SignInAttempt) -> String {
    if case .page(let target) = attempt.destination { target } else { "app" }
}

/// The code of the error, or an empty text.
private func code(_ body: () throws(BrowserError) -> Void) -> String {
    do throws(BrowserError) {
        try body()
        return ""
    } catch {
        return error.code.rawValue
    }
}

@Suite struct `Sign-ins of a browser` {
    @Test func `come back from their cookies`() throws {
        let first = try attempt("apple", .page("/orders?id=1"))
        let session = SignInAttempt.Session(subject: "usr_1", id: "s1")
        let second = try SignInAttempt(
            provider: "wechat", purpose: .link, destination: try app(), session: session, now: start)
        let third = try attempt("oidc", try app(state: nil))
        for original in [first, second, third] {
            let value = try #require(try seal.seal(original))
            #expect(value.utf8.allSatisfy(CookieValue.isMember))
            let opened = try #require(seal.open(Array(value.utf8)))
            #expect(opened.destination == original.destination && opened.session == original.session)
            #expect(opened.provider == original.provider && opened.purpose == original.purpose)
            #expect(opened.created == start && opened.nonce == original.nonce && opened.verifier == original.verifier)
            #expect(opened.usedKey == original.usedKey && opened.challenge == original.challenge)
            #expect(opened.cookieID == original.cookieID)
        }
    }

    @Test func `have values of their own that every provider takes`() throws {
        let (one, other) = (try attempt(), try attempt())
        let values = [one, other].flatMap {
            [$0.state, $0.nonce, $0.verifier, $0.usedKey, $0.challenge, $0.cookieID]
        }
        #expect(Set(values).count == values.count)
        #expect(one.cookieID.utf8.count == SignInAttempt.cookieIDLength && !one.state.contains(one.cookieID))
        #expect(one.state.utf8.count == 64 && one.state.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) })
        #expect(one.verifier.utf8.count == 43 && CodeChallenge(verifier: one.verifier).text == one.challenge)
    }

    @Test func `are found by their state, and completed with their provider, in ten minutes`() throws {
        var attempts = SignInAttempts()
        let kept = try attempt()
        for one in [try attempt(), kept, try attempt()] { attempts.add(one, bytes: 100) }
        #expect(try attempts.find(state: kept.state).cookieID == kept.cookieID)
        for other in ["", try attempt().state, String(kept.state.dropLast())] {
            #expect(
                code { () throws(BrowserError) in _ = try attempts.find(state: other) } == "browser.attempt_unknown")
        }
        for (provider, seconds, expected) in [
            ("apple", 599, ""), ("wechat", 0, "browser.attempt_provider"), ("apple", 600, "browser.attempt_expired"),
            ("apple", -61, "browser.attempt_expired"), ("apple", -60, ""),
        ] as [(String, Int64, String)] {
            let now = start.advanced(bySeconds: seconds)
            #expect(code { () throws(BrowserError) in try kept.check(provider: provider, now: now) } == expected)
        }
    }

    /// The pages of the attempts that go with one more.
    private func gone(_ attempts: [SignInAttempt], bytes: Int = 100, at now: UnixTime = start) -> [String] {
        var all = SignInAttempts()
        for attempt in attempts { all.add(attempt, bytes: bytes) }
        return all.superseded(byOneMoreOf: bytes, now: now).map(page)
    }

    @Test func `are at most five, and the oldest goes`() throws {
        let attempts = try (1...7).map { number in
            try attempt("apple", at: start.advanced(bySeconds: Int64(number)), .page("/\(number)"))
        }
        #expect(gone(Array(attempts[..<4])) == [])
        #expect(gone(Array(attempts[..<5])) == ["/1"])
        #expect(gone(attempts.reversed()) == ["/1", "/2", "/3"])
        let later = start.advanced(bySeconds: 603)
        #expect(gone(Array(attempts[..<4]), at: later) == ["/1", "/2", "/3"])
    }

    @Test func `leave room in the head of a request`() throws {
        let attempts = try (1...4).map { number in
            try attempt("apple", at: start.advanced(bySeconds: Int64(number)), .page("/\(number)"))
        }
        #expect(gone(Array(attempts[..<2]), bytes: 3000) == [])
        #expect(gone(attempts, bytes: 3000) == ["/1", "/2"])
    }

    @Test func `fit into a cookie as a whole`() throws {
        let long = "/" + String(repeating: "a", count: ReturnRule.maximumBytes - 1)
        let provider = String(repeating: "p", count: 64)
        let redirect = "com.example.app:/" + String(repeating: "r", count: 495)
        let largest = SignInAttempt.Destination.app(
            try AppRequest(
                redirect: redirect, challenge: CodeChallenge(verifier: "v").text, method: "S256",
                state: String(repeating: "s", count: 512), redirects: [redirect]))
        for destination in [.page(long), largest] {
            let value = try #require(try seal.seal(try attempt(provider, destination)))
            #expect(value.utf8.count <= CookieValue.maximumBytes)
            #expect(seal.open(Array(value.utf8))?.destination == destination)
        }
        #expect(try seal.seal(try attempt(provider + "p")) == nil)
        #expect(try seal.seal(try attempt("apple", .page(String(repeating: "a", count: 2900)))) == nil)
    }

    @Test func `cannot be read, changed or used elsewhere`() throws {
        let kept = try attempt("apple", .page("/secret-page"))
        let value = Array(try #require(try seal.seal(kept)).utf8)
        #expect(try seal.seal(kept) != String(decoding: value, as: UTF8.self), "sealed anew")
        #expect(AttemptSeal(key: Secret([UInt8](repeating: 8, count: 32))).open(value) == nil)
        let raw = Secret([UInt8](repeating: 7, count: 32))
        let bytes = try #require(Base64URL.decode(value))
        #expect(AES256GCM.open(bytes, with: raw, context: []) == nil, "a key of its own")
        for index in value.indices {
            var changed = value
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(seal.open(changed) == nil)
        }
        #expect(
            seal.open([]) == nil && seal.open(Array(value.dropLast())) == nil && seal.open(value + [0x41]) == nil)
        #expect(!"\(kept)".contains(kept.state) && !"\(kept)".contains(kept.verifier))
    }

    @Test func `are decoded from nothing else`() throws {
        for one in [try attempt(), try attempt("wechat", try app())] {
            let encoded = AttemptCoding.encode(one)
            #expect(AttemptCoding.decode(encoded)?.state == one.state && encoded.count == AttemptCoding.size(one))
            for count in 0..<encoded.count { #expect(AttemptCoding.decode(Array(encoded.prefix(count))) == nil) }
            #expect(AttemptCoding.decode(encoded + [0]) == nil)
            #expect(AttemptCoding.decode([2] + encoded.dropFirst()) == nil)
        }
    }
}

@Suite struct `A token of a form` {
    private static let tokens = FormTokens(key: Secret([UInt8](repeating: 7, count: 32)))

    @Test func `is bound to a browser, a purpose and a time`() throws {
        let browser = Array(try FormTokens.newBrowser().utf8)
        let other = Array(try FormTokens.newBrowser().utf8)
        #expect(FormTokens.isBrowser(browser) && !FormTokens.isBrowser([]) && !FormTokens.isBrowser(Array("x".utf8)))
        let token = Self.tokens.token(for: "sign-in", browser: browser, now: start)
        func outcome(
            _ token: String, _ browser: [UInt8], _ seconds: Int64 = 0, purpose: String = "sign-in",
            _ tokens: FormTokens = Self.tokens
        ) -> String {
            code { () throws(BrowserError) in
                try tokens.check(token, for: purpose, browser: browser, now: start.advanced(bySeconds: seconds))
            }
        }
        #expect(outcome(token, browser) == "" && outcome(token, browser, 12 * 3600 - 1) == "")
        #expect(outcome(token, browser, 12 * 3600) == "browser.form_token_expired")
        #expect(outcome(token, other) == "browser.form_token_invalid")
        #expect(outcome(token, []) == "browser.form_token_invalid")
        #expect(outcome(token, browser, purpose: "sign-out") == "browser.form_token_invalid")
        #expect(outcome("", browser) == "browser.form_token_invalid")
        #expect(outcome(token + "A", browser) == "browser.form_token_invalid")
        let stranger = FormTokens(key: Secret([UInt8](repeating: 8, count: 32)))
        #expect(outcome(token, browser, 0, purpose: "sign-in", stranger) == "browser.form_token_invalid")
        let bytes = try #require(Base64URL.decode(token))
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(outcome(Base64URL.encode(changed), browser) == "browser.form_token_invalid")
        }
    }
}
