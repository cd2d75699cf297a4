import MartletTesting
import Testing

/// Sign in with Apple tokens as bearer credentials.
@Suite struct `Apple bearer tokens` {
    /// A change that makes a good token bad, and what it is called.
    struct Forgery: CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable (AppleFixture) throws -> String

        init(_ name: String, _ make: @escaping @Sendable (AppleFixture) throws -> String) {
            testDescription = name
            self.make = make
        }

        /// One claim replaced, or removed where the value is `nil`.
        init(claim name: String, _ value: JSONText?) {
            self.init("\(name) is \(value?.text ?? "absent")") { try $0.token { $0.claims[name] = value } }
        }

        /// One header member replaced, or removed where the value is `nil`.
        init(header name: String, _ value: JSONText?) {
            self.init("header \(name) is \(value?.text ?? "absent")") { try $0.token { $0.header[name] = value } }
        }
    }

    static let claims: [Forgery] = [
        Forgery(claim: "exp", JSONText(unixNow() - 1)), Forgery(claim: "exp", JSONText(unixNow() - 86_400)),
        Forgery(claim: "exp", nil),
        Forgery(claim: "exp", JSONText("\"\(unixNow() + 3600)\"")),
        Forgery(claim: "exp", JSONText("\(unixNow() + 3600).5")),
        Forgery(claim: "exp", "1e12"), Forgery(claim: "exp", "99999999999999999999999999"),
        Forgery(claim: "exp", "null"),
        Forgery(claim: "exp", "-1"), Forgery(claim: "iat", JSONText(unixNow() + 600)), Forgery(claim: "iat", nil),
        Forgery(claim: "iat", JSONText(unixNow() - 90_000)), Forgery(claim: "iat", "\"0\""),
        Forgery(claim: "nbf", JSONText(unixNow() + 600)), Forgery(claim: "iss", nil),
        Forgery(claim: "iss", "\"https://appleid.apple.com/\""),
        Forgery(claim: "iss", "\"https://APPLEID.apple.com\""), Forgery(claim: "iss", "\"https://evil.test\""),
        Forgery(claim: "iss", "[\"https://appleid.apple.com\"]"), Forgery(claim: "aud", nil),
        Forgery(claim: "aud", "\"\""),
        Forgery(claim: "aud", "\"com.example.other\""), Forgery(claim: "aud", "\"com.example.app.evil\""),
        Forgery(claim: "aud", "\"com.example.ap\""), Forgery(claim: "aud", "\"COM.EXAMPLE.APP\""),
        Forgery(claim: "aud", "[]"),
        Forgery(claim: "aud", "[\"com.example.app\",\"com.example.other\"]"),
        Forgery(claim: "aud", "{\"a\":\"com.example.app\"}"),
        Forgery(claim: "sub", nil), Forgery(claim: "sub", "\"\""), Forgery(claim: "sub", "1"),
        Forgery(claim: "sub", "null"),
        Forgery(claim: "sub", "[\"a\"]"), Forgery(claim: "sub", JSONText(string: String(repeating: "a", count: 300))),
    ]

    static let headers: [Forgery] = [
        Forgery(header: "kid", nil), Forgery(header: "kid", "\"unknown\""),
        Forgery(header: "kid", "\"../../etc/passwd\""),
        Forgery(header: "kid", "\"TEST-KEY-1\""), Forgery(header: "kid", "1"), Forgery(header: "kid", "\"\""),
        Forgery(header: "alg", nil),
        Forgery(header: "alg", "\"none\""), Forgery(header: "alg", "\"None\""), Forgery(header: "alg", "\"HS256\""),
        Forgery(header: "alg", "\"ES256\""), Forgery(header: "alg", "\"PS256\""), Forgery(header: "alg", "\"RS384\""),
        Forgery(header: "alg", "\"rs256\""), Forgery(header: "alg", "[\"RS256\"]"),
        Forgery(header: "crit", "[\"exp\"]"),
        Forgery(header: "crit", "[]"), Forgery(header: "b64", "false"), Forgery(header: "zip", "\"DEF\""),
        Forgery(header: "cty", "\"JWT\""), Forgery(header: "cty", "\"\""),
        Forgery(header: "enc", "\"A256GCM\""),
        Forgery("its own key in the header") { apple in
            let own = try SigningKey(apple.key.identifier)
            var token = Token(kid: own.identifier)
            let members = try own.jwk().map { "\"\($0.key)\":\"\($0.value)\"" }.joined(separator: ",")
            token.header["jwk"] = JSONText("{\(members)}")
            return try token.signed(by: own)
        },
        Forgery("a key at an address of its own") { apple in
            let own = try SigningKey("own")
            var token = Token(kid: "own")
            token.header["jku"] = JSONText(string: apple.url + "?own")
            return try token.signed(by: own)
        },
    ]

    static let signatures: [Forgery] = [
        Forgery("signed by another key under our kid") { apple in
            try Token(kid: apple.key.identifier).signed(by: try SigningKey("x"))
        },
        Forgery("none without a signature") { apple in
            var token = Token(kid: apple.key.identifier)
            token.header["alg"] = "\"none\""
            return token.signingInput + "."
        },
        Forgery("NoNe without a signature") { apple in
            var token = Token(kid: apple.key.identifier)
            token.header["alg"] = "\"NoNe\""
            return token.signingInput + "."
        },
        Forgery("HS256 with the public key as its secret") { apple in
            var token = Token(kid: apple.key.identifier)
            token.header["alg"] = "\"HS256\""
            return token.signed(byHMAC: try apple.key.publicPEM())
        },
        Forgery("HS256 with an empty secret") { apple in
            var token = Token(kid: apple.key.identifier)
            token.header["alg"] = "\"HS256\""
            return token.signed(byHMAC: [])
        },
        Forgery("ES256 over an RSA key") { apple in
            var token = Token(kid: apple.key.identifier)
            token.header["alg"] = "\"ES256\""
            return try token.signed(by: try SigningKey("x", .p256))
        },
        Forgery("no signature") { apple in
            try apple.token().split(separator: ".").dropLast().joined(separator: ".") + "."
        },
        Forgery("two segments") { try $0.token().split(separator: ".").dropLast().joined(separator: ".") },
        Forgery("four segments") { try $0.token() + ".AAAA" },
        Forgery("five segments") { try $0.token() + ".AAAA.AAAA" },
        Forgery("a trailing dot") { try $0.token() + "." },
        Forgery("a shortened signature") { String(try $0.token().dropLast(4)) },
        Forgery("a lengthened signature") { try $0.token() + "AAAA" },
        Forgery("padding") { try $0.token() + "==" },
        Forgery("another claim under the same signature") { apple in
            let parts = try apple.token().split(separator: ".").map(String.init)
            var token = Token(kid: apple.key.identifier)
            token.claims["sub"] = "\"root\""
            return token.signingInput + "." + parts[2]
        },
        Forgery("a signature in the other alphabet") { apple in
            for _ in 0..<200 {
                let token = try apple.token(subject: "s\(UInt32.random(in: 0 ... .max))")
                let parts = token.split(separator: ".").map(String.init)
                guard parts[2].contains("-") || parts[2].contains("_") else { continue }
                let other = String(parts[2].map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 })
                return parts[0] + "." + parts[1] + "." + other
            }
            throw TestFailure("no signature with - or _")
        },
        Forgery("bits behind the signature's end") { apple in
            // 256 bytes end in four unused bits, which must be zero.
            var text = try apple.token()
            let last = text.removeLast()
            let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
            let index = alphabet.firstIndex(of: last) ?? 0
            return text + String(alphabet[index | 1])
        },
        Forgery("a member twice") { apple in
            var token = Token(kid: apple.key.identifier)
            token.claims["a"] = "1,\"sub\":\"root\""
            return try token.signed(by: apple.key)
        },
        Forgery("a member twice after unescaping") { apple in
            var token = Token(kid: apple.key.identifier)
            token.claims["a"] = "1,\"\\u0073ub\":\"root\""
            return try token.signed(by: apple.key)
        },
        Forgery("bytes behind the payload") { apple in
            var token = Token(kid: apple.key.identifier)
            token.claims["z"] = "1}{"
            return try token.signed(by: apple.key)
        },
        Forgery("a deep payload") { apple in
            var token = Token(kid: apple.key.identifier)
            token.claims["z"] = JSONText(String(repeating: "[", count: 2000) + String(repeating: "]", count: 2000))
            return try token.signed(by: apple.key)
        },
        Forgery("dots alone") { _ in String(repeating: ".", count: 5000) },
        Forgery("no token at all") { _ in "abc" },
        Forgery("one of our own that was never given out") { _ in "mat_" + String(repeating: "A", count: 60) },
    ]

    @Test func `whatever is wrong with a token, it is 401 and reaches no upstream`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            #expect(try gateway.get("/warm", bearer(apple.token())).status == 200)
            for path in ["/closed", "/maybe/a"] {
                for forgery in Self.claims + Self.headers + Self.signatures {
                    do {
                        let response = try gateway.get(path, bearer(forgery.make(apple)))
                        expectUnauthorized(response, "credential_invalid", "\(path): \(forgery.testDescription)")
                    } catch {
                        Issue.record("\(forgery.testDescription): \(error)")
                    }
                }
            }
            #expect(upstream.requests.map(\.target) == ["/warm"])
        }
    }

    @Test func `what Apple may send is taken`() throws {
        let good: [Forgery] = [
            Forgery(claim: "aud", "\"com.example.web\""), Forgery(claim: "aud", "[\"com.example.app\"]"),
            Forgery(claim: "iat", JSONText(unixNow() + 30)), Forgery(claim: "nbf", JSONText(unixNow() + 30)),
            Forgery(claim: "email", nil), Forgery(claim: "email_verified", "\"true\""),
            Forgery(claim: "is_private_email", "\"true\""),
            Forgery(claim: "auth_time", nil), Forgery(claim: "real_user_status", "2"),
            Forgery(claim: "real_user_status", "9"),
            Forgery(claim: "unknown", "{\"a\":[1,2,{\"b\":null}]}"), Forgery(claim: "nonce", "\"of the app\""),
            Forgery(header: "typ", "\"JWT\""),
        ]
        try withAppleGateway { gateway, _, apple throws in
            for change in good {
                let response = try gateway.get("/closed", bearer(change.make(apple)))
                #expect(response.status == 200, "\(change.testDescription): \(response)")
            }
        }
    }

    @Test func `no credential is 401 with a challenge, and one in the query is none`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            expectUnauthorized(try gateway.get("/closed"), "credential_missing")
            expectUnauthorized(try gateway.get("/closed?access_token=\(apple.token())"), "credential_missing")
            expectUnauthorized(try gateway.get("/closed", [("Cookie", "token=\(apple.token())")]), "credential_missing")
            #expect(upstream.requests.isEmpty)
        }
    }

    @Test func `two Authorization fields are a malformed request, on public routes too`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            let token = try apple.token()
            for path in ["/closed", "/maybe/a", "/public/a"] {
                expectRejection(try gateway.get(path, bearer(token) + bearer(token)), 400, "request_invalid", path)
                expectRejection(
                    try gateway.get(path, bearer(token) + [("authorization", "Basic eDp5")]), 400, "request_invalid",
                    path)
            }
            #expect(upstream.requests.isEmpty)
        }
    }

    @Test func `the scheme is compared without case, another scheme is not taken`() throws {
        try withAppleGateway { gateway, _, apple throws in
            let token = try apple.token()
            for scheme in ["Bearer", "bearer", "BEARER"] {
                #expect(try gateway.get("/closed", [("Authorization", "\(scheme) \(token)")]).status == 200)
            }
            for value in [
                token, "Basic \(token)", "Bearer", "Bearer a b", "Bearer \(token), Bearer \(token)", "Digest x=y",
            ] {
                let response = try gateway.get("/closed", [("Authorization", value)])
                #expect(response.status == 401, "\(value.prefix(20)): \(response)")
            }
        }
    }

    @Test func `a token that was good is refused from the second it ends`() throws {
        try withAppleGateway { gateway, _, apple throws in
            let end = unixNow() + 3
            let token = try apple.token { $0.claims["exp"] = JSONText(end) }
            #expect(try gateway.get("/closed", bearer(token)).status == 200)
            try waitUntil("the token has ended") { unixNow() > end }
            expectUnauthorized(try gateway.get("/closed", bearer(token)), "credential_invalid")
        }
    }

    @Test func `ES256 is taken where it is configured, and only with a whole signature`() throws {
        let apple = try AppleFixture()
        let curve = try SigningKey("curve", .p256)
        apple.setKeys([apple.key, curve])
        var made = Token(kid: "curve")
        made.header["alg"] = "\"ES256\""
        let token = made
        let zeros = token.signingInput + "." + base64URL([UInt8](repeating: 0, count: 64))
        try withAppleGateway(apple: apple) { gateway, _, _ throws in
            expectUnauthorized(try gateway.get("/closed", bearer(token.signed(by: curve))), "credential_invalid")
        }
        try withAppleGateway(provider: "algorithms: [RS256, ES256]", apple: apple) { gateway, _, _ throws in
            #expect(try gateway.get("/closed", bearer(token.signed(by: curve))).status == 200)
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            expectUnauthorized(try gateway.get("/closed", bearer(zeros)), "credential_invalid")
            var wrong = token
            wrong.header["alg"] = "\"RS256\""
            expectUnauthorized(try gateway.get("/closed", bearer(wrong.signed(by: curve))), "credential_invalid")
        }
    }

    @Test func `an RSA key under 2048 bits proves nothing`() throws {
        let apple = try AppleFixture()
        let weak = try SigningKey("weak", .rsa(bits: 1024))
        apple.setKeys([apple.key, weak])
        try withAppleGateway(apple: apple) { gateway, _, _ throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            expectUnauthorized(
                try gateway.get("/closed", bearer(Token(kid: "weak").signed(by: weak))), "credential_invalid")
        }
    }

    @Test func `leeway is given where it is configured`() throws {
        try withAppleGateway(provider: "leeway: 30s") { gateway, _, apple throws in
            let ended = { (seconds: Int) throws -> String in
                try apple.token {
                    $0.claims["iat"] = JSONText(unixNow() - 600)
                    $0.claims["exp"] = JSONText(unixNow() - seconds)
                }
            }
            #expect(try gateway.get("/closed", bearer(ended(10))).status == 200)
            expectUnauthorized(try gateway.get("/closed", bearer(ended(40))), "credential_invalid")
        }
    }
}
