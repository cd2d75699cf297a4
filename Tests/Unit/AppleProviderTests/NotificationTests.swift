import AppleProvider
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@Suite struct NotificationTests {
    private static let time = Bench.now * 1000 - 5000

    /// The claims that make a token a notification.
    private static func events(_ text: String) -> (inout Token) -> Void {
        { token in
            for name in ["sub", "email", "email_verified", "nonce_supported", "auth_time"] { token.claims[name] = nil }
            token.claims["jti"] = "\"jti-1\""
            token.claims["events"] = JSONText(string: text)
        }
    }

    private static func body(_ type: String, time: String = "\(time)", sub: String = "\"001\"") -> String {
        #"{"type":"\#(type)","sub":\#(sub),"event_time":\#(time)}"#
    }

    private func read(
        _ change: (inout Token) -> Void, key: Result<SigningKey, any Error> = Bench.key, isForm: Bool = false
    ) async throws -> Result<ProviderNotification, AuthenticationError> {
        let bench = try Bench([("notifications", .text("true"))])
        let token = try Bench.token(by: key.get(), change)
        let form = SignInForm(texts: ["payload": Secret(token)], others: [:], isForm: isForm)
        do throws(AuthenticationError) {
            return .success(try await bench.provider.readNotification(form, in: Bench.context))
        } catch {
            return .failure(error)
        }
    }

    private func code(_ change: (inout Token) -> Void) async throws -> ErrorCode? {
        if case .failure(let error) = try await read(change) { return error.code }
        return nil
    }

    @Test func `knows Apple's types, in both spellings`() async throws {
        let cases: [(String, ProviderNotification.Change)] = [
            ("consent-revoked", .consentRevoked), ("account-delete", .accountDeleted),
            ("account-deleted", .accountDeleted), ("email-disabled", .claims(["email_forwarding": false])),
            ("email-enabled", .claims(["email_forwarding": true])), ("something-new", .none),
        ]
        for (type, change) in cases {
            let notification = try await read(Self.events(Self.body(type))).get()
            #expect(
                notification
                    == ProviderNotification(id: "jti-1", type: type, subject: "001", time: Self.time, change: change))
        }
    }

    @Test func `takes events as text and as an object, and times in both units`() async throws {
        let object = try await read { token in
            Self.events("")(&token)
            token.claims["events"] = JSONText(stringLiteral: Self.body("consent-revoked"))
        }.get()
        #expect(object.change == .consentRevoked && object.time == Self.time)
        let seconds = try await read(Self.events(Self.body("email-enabled", time: "\(Self.time / 1000)"))).get()
        #expect(seconds.time == Self.time)
    }

    @Test func `is taken for the team, too`() async throws {
        for (audience, code) in [("ABCDE12345", nil), ("OTHER12345", "apple.bad_audience")] as [(String, ErrorCode?)] {
            let bench = try Bench(Bench.developerLines([("notifications", .text("true"))]))
            let token = try Bench.token { token in
                Self.events(Self.body("consent-revoked"))(&token)
                token.claims["aud"] = JSONText(string: audience)
            }
            let form = SignInForm(texts: ["payload": Secret(token)], others: [:], isForm: false)
            var found: ErrorCode?
            do throws(AuthenticationError) {
                _ = try await bench.provider.readNotification(form, in: Bench.context)
            } catch {
                found = error.code
            }
            #expect(found == code)
            // No identity token is for a team.
            #expect(
                try await bench.failureCode(Bench.token { $0.claims["aud"] = JSONText(string: audience) })
                    == "apple.bad_audience")
        }
    }

    @Test func `without an id is identified by its bytes`() async throws {
        func id(_ type: String) async throws -> String {
            try await read { token in
                Self.events(Self.body(type))(&token)
                token.claims["jti"] = nil
            }.get().id
        }
        let first = try await id("email-enabled")
        #expect(first.hasPrefix("sha256:"))
        #expect(try await id("email-enabled") == first)
        #expect(try await id("email-disabled") != first)
    }

    @Test func `anything else is bad`() async throws {
        let bad: [String] = [
            "", "null", "[]", #""text""#, "{}", Self.body("consent-revoked", time: "\"\(Self.time)\""),
            Self.body("consent-revoked", time: "1.5"), Self.body("consent-revoked", time: "-1"),
            Self.body("consent-revoked", time: "0"), Self.body("consent-revoked", time: "1e400"),
            Self.body("consent-revoked", time: "9223372036854775807"), Self.body("consent-revoked", time: "1000"),
            Self.body("consent-revoked", time: "\(Bench.now * 1000 + 301_000)"),
            Self.body("consent-revoked", time: "99999999999"), Self.body("consent-revoked", sub: "1"),
            Self.body("consent-revoked", sub: "\"\""), Self.body("consent-revoked", sub: "\"a\\u0000b\""),
            Self.body("consent-revoked", sub: "\"\(String(repeating: "a", count: 256))\""), Self.body(""),
            Self.body("a b"), Self.body(String(repeating: "a", count: 65)),
            "[\(Self.body("consent-revoked"))]", String(repeating: "[", count: 100_000),
            "{\"type\":\"\(String(repeating: "x", count: 9000))\"}",
        ]
        for text in bad {
            let found = try await code(Self.events(text))
            // A token over the size limit does not get so far.
            #expect(
                ["apple.bad_notification", "apple.token_too_large"].contains(found),
                "\(text.prefix(80)): \(found as Any)")
        }
        let none = try await code { token in
            Self.events("")(&token)
            token.claims["events"] = nil
        }
        #expect(none == "apple.bad_notification")
    }

    @Test func `is verified like a token`() async throws {
        let fine = Self.events(Self.body("consent-revoked"))
        let forged = try SigningKey("RSAKEY1")
        guard case .failure(let error) = try await read(fine, key: .success(forged)) else {
            Issue.record("a forged notification was accepted")
            return
        }
        #expect(error.code == "apple.bad_signature" && error.disposition == .rejected)
        let changes: [(ErrorCode, (inout Token) -> Void)] = [
            ("apple.bad_audience", { $0.claims["aud"] = "\"com.other\"" }),
            ("apple.bad_issuer", { $0.claims["iss"] = "\"https://evil.example\"" }),
            ("apple.expired", { $0.claims["exp"] = JSONText(Int(Bench.now) - 1) }),
            ("apple.bad_times", { $0.claims["exp"] = nil }),
            ("apple.issued_in_future", { $0.claims["iat"] = JSONText(Int(Bench.now) + 61) }),
            ("apple.alg_not_allowed", { $0.header["alg"] = "\"none\"" }),
        ]
        for (expected, change) in changes {
            let found = try await code { token in
                fine(&token)
                change(&token)
            }
            #expect(found == expected)
        }
    }

    @Test func `is no login, and a login is no notification`() async throws {
        let bench = try Bench([("notifications", .text("true"))])
        let result = try await bench.login { $0.claims["events"] = "\"{}\"" }
        #expect(result.code == "apple.wrong_token_kind")
        #expect(try await code { _ in } == "apple.bad_notification")
    }

    @Test func `is only accepted where it is turned on`() throws {
        #expect(try !Bench().provider.acceptsNotifications)
        #expect(try !Bench([("notifications", .text("false"))]).provider.acceptsNotifications)
        #expect(try Bench([("notifications", .text("true"))]).provider.acceptsNotifications)
    }
}
