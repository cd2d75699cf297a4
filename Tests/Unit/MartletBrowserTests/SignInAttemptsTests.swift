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

private func pages(_ attempts: SignInAttempts) -> [String] {
    attempts.all.map { if case .page(let target) = $0.destination { target } else { "app" } }
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
    @Test func `come back from its cookie`() throws {
        var attempts = SignInAttempts()
        let first = try attempt("apple", .page("/orders?id=1"))
        let second = try SignInAttempt(provider: "wechat", purpose: .link, destination: try app(), now: start)
        let third = try attempt("oidc", try app(state: nil))
        for one in [first, second, third] { try attempts.add(one, now: start) }
        let value = try #require(try seal.seal(attempts))
        #expect(value.utf8.allSatisfy(CookieValue.isMember))
        var opened = seal.open(Array(value.utf8))
        #expect(opened.all.map(\.destination) == [first.destination, second.destination, third.destination])
        for original in [second, first, third] {
            let taken = try opened.take(state: original.state, provider: original.provider, now: start)
            #expect(taken.purpose == original.purpose && taken.created == start)
            #expect(taken.nonce == original.nonce && taken.verifier == original.verifier)
            #expect(taken.usedKey == original.usedKey && taken.challenge == original.challenge)
        }
        #expect(try seal.seal(opened) == nil)
    }

    @Test func `have values of their own that every provider takes`() throws {
        let (one, other) = (try attempt(), try attempt())
        let values = [one, other].flatMap { [$0.state, $0.nonce, $0.verifier, $0.usedKey, $0.challenge] }
        #expect(Set(values).count == values.count)
        #expect(one.state.utf8.count == 64 && one.state.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) })
        #expect(one.verifier.utf8.count == 43 && CodeChallenge(verifier: one.verifier).text == one.challenge)
    }

    @Test func `are taken once, by their state, with their provider, in ten minutes`() throws {
        var attempts = SignInAttempts()
        let kept = try attempt()
        try attempts.add(kept, now: start)
        #expect(
            code { () throws(BrowserError) in _ = try attempts.take(state: "", provider: "apple", now: start) }
                == "browser.attempt_unknown")
        let other = try attempt().state
        #expect(
            code { () throws(BrowserError) in _ = try attempts.take(state: other, provider: "apple", now: start) }
                == "browser.attempt_unknown")
        _ = try attempts.take(state: kept.state, provider: "apple", now: start.advanced(bySeconds: 599))
        #expect(
            code { () throws(BrowserError) in _ = try attempts.take(state: kept.state, provider: "apple", now: start) }
                == "browser.attempt_unknown")
        for (provider, seconds, expected) in [
            ("wechat", 0, "browser.attempt_provider"), ("apple", 600, "browser.attempt_expired"),
            ("apple", -61, "browser.attempt_expired"), ("apple", -60, ""),
        ] as [(String, Int64, String)] {
            attempts = SignInAttempts()
            try attempts.add(kept, now: start)
            let now = start.advanced(bySeconds: seconds)
            let found = code { () throws(BrowserError) in
                _ = try attempts.take(state: kept.state, provider: provider, now: now)
            }
            #expect(found == expected)
            #expect(attempts.isEmpty, "used, whatever the outcome")
        }
    }

    @Test func `are at most five, and the oldest goes`() throws {
        var attempts = SignInAttempts()
        for number in 1...7 { try attempts.add(try attempt("apple", .page("/\(number)")), now: start) }
        #expect(pages(attempts) == ["/3", "/4", "/5", "/6", "/7"])
        let later = start.advanced(bySeconds: 600)
        try attempts.add(try attempt("apple", at: later, .page("/8")), now: later)
        #expect(pages(attempts) == ["/8"])
    }

    @Test func `fit into a cookie, and the newest is complete`() throws {
        var attempts = SignInAttempts()
        let long = "/" + String(repeating: "a", count: ReturnRule.maximumBytes - 1)
        let provider = String(repeating: "p", count: 64)
        for _ in 1...5 {
            try attempts.add(try attempt(provider, .page(long)), now: start)
            let value = try #require(try seal.seal(attempts))
            #expect(value.utf8.count <= CookieValue.maximumBytes)
            #expect(seal.open(Array(value.utf8)).all.count == attempts.all.count)
        }
        #expect(pages(attempts) == ["/", "/", "/", "/", long])
        // Apps of the largest size: the oldest go.
        let redirect = "com.example.app:/" + String(repeating: "r", count: 495)
        let largest = SignInAttempt.Destination.app(
            try AppRequest(
                redirect: redirect, challenge: CodeChallenge(verifier: "v").text, method: "S256",
                state: String(repeating: "s", count: 512), redirects: [redirect]))
        for _ in 1...5 { try attempts.add(try attempt(provider, largest), now: start) }
        #expect(attempts.all.count == 2)
        #expect(try #require(try seal.seal(attempts)).utf8.count <= CookieValue.maximumBytes)
        let tooLarge = try attempt(String(repeating: "p", count: 65))
        #expect(
            code { () throws(BrowserError) in try attempts.add(tooLarge, now: start) } == "browser.attempt_too_large")
    }

    @Test func `cannot be read, changed or used elsewhere`() throws {
        var attempts = SignInAttempts()
        let kept = try attempt("apple", .page("/secret-page"))
        try attempts.add(kept, now: start)
        let value = Array(try #require(try seal.seal(attempts)).utf8)
        #expect(try seal.seal(attempts) != String(decoding: value, as: UTF8.self), "sealed anew")
        #expect(AttemptSeal(key: Secret([UInt8](repeating: 8, count: 32))).open(value).isEmpty)
        let raw = Secret([UInt8](repeating: 7, count: 32))
        let bytes = try #require(Base64URL.decode(value))
        #expect(AES256GCM.open(bytes, with: raw, context: []) == nil, "a key of its own")
        for index in value.indices {
            var changed = value
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(seal.open(changed).isEmpty)
        }
        #expect(
            seal.open([]).isEmpty && seal.open(Array(value.dropLast())).isEmpty && seal.open(value + [0x41]).isEmpty)
        #expect(!"\(kept)".contains(kept.state) && !"\(attempts)".contains(kept.verifier))
    }

    @Test func `are decoded from nothing else`() throws {
        let encoded = AttemptCoding.encode([try attempt(), try attempt("wechat", try app())])
        #expect(AttemptCoding.decode(encoded)?.count == 2)
        #expect(encoded.count == AttemptCoding.size(try #require(AttemptCoding.decode(encoded))))
        for count in 0..<encoded.count where count != 1 {
            let rest = AttemptCoding.decode(Array(encoded.prefix(count)))
            #expect(rest == nil || rest?.count == 1)
        }
        #expect(AttemptCoding.decode([9]) == nil)
        #expect(AttemptCoding.decode([2])?.isEmpty == true)
        #expect(AttemptCoding.decode(encoded + [0]) == nil)
        let six = AttemptCoding.encode(try (1...6).map { _ in try attempt() })
        #expect(AttemptCoding.decode(six) == nil)
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
