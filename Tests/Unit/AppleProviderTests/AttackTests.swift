import MartletCore
import MartletTesting
import Testing

/// Attacks on the token's form and signature, where changing one claim is not enough.
@Suite struct AttackTests {
    static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

    @Test func `rejects every form that is not three parts of strict base64url`() async throws {
        let bench = try Bench()
        let good = try Bench.token()
        let parts = good.split(separator: ".").map(String.init)
        let bad = [
            ".", "..", "a.b", "\(parts[0]).\(parts[1])", "\(parts[0]).\(parts[1]).", ".\(parts[1]).\(parts[2])",
            "\(parts[0])..\(parts[2])",
            "\(good).", ".\(good)", "\(good).x", "\(good).x.y", "\(good)=", "\(good)==", "\(good)\n", " \(good)",
            "\(good)é",
            "\(parts[0])=.\(parts[1]).\(parts[2])",
            "\(parts[0]).\(parts[1]).\(parts[2].replacing("-", with: "+").replacing("_", with: "/"))+",
            "{\"payload\":\"\(parts[1])\",\"protected\":\"\(parts[0])\",\"signature\":\"\(parts[2])\"}",
            String(repeating: ".", count: 8000),
            "\(parts[0]).\(parts[1]).\(parts[2].prefix(5))",
        ]
        for token in bad { #expect(await bench.failureCode(token) == "apple.malformed", "\(token.prefix(60))") }
    }

    @Test func `rejects the twin that differs in spare bits`() async throws {
        let bench = try Bench()
        let good = try Bench.token()
        // 256 bytes leave 4 spare bits in the last digit.
        let last = try #require(Self.alphabet.firstIndex(of: good.last ?? " "))
        #expect(last % 16 == 0)
        for twin in last + 1..<last + 16 {
            #expect(await bench.failureCode(good.dropLast() + String(Self.alphabet[twin])) == "apple.malformed")
        }
    }

    @Test func `rejects oversized input before parsing it`() async throws {
        let bench = try Bench()
        #expect(await bench.failureCode("") == "apple.token_missing")
        #expect(await bench.failureCode(String(repeating: "a", count: 8193)) == "apple.token_too_large")
        #expect(await bench.failureCode(String(repeating: "a.", count: 5_000_000)) == "apple.token_too_large")
        let header = base64URL(
            Array("{\"alg\":\"RS256\",\"kid\":\"RSAKEY1\",\"x\":\"\(String(repeating: "x", count: 6200))\"}".utf8))
        #expect(await bench.failureCode("\(header).e30.AAAA") == "apple.token_too_large")
        let deep = base64URL(Array(String(repeating: "[", count: 5000).utf8))
        #expect(await bench.failureCode("\(deep).e30.AAAA") == "apple.malformed")
        #expect(await bench.failureCode("e30.\(deep).AAAA") == "apple.malformed")
        #expect(bench.issuer.fetches == 0)
    }

    static let badJSON: [[UInt8]] = [
        Array("".utf8), Array("[]".utf8), Array("\"a\"".utf8), Array("{".utf8), Array("{}{}".utf8),
        Array("{\"sub\":\"a\",\"sub\":\"b\"}".utf8),
        Array(#"{"sub":"a","\u0073ub":"b"}"#.utf8), Array(#"{"aud":"a","aud":"a"}"#.utf8),
        Array(#"{"a":"\ud800"}"#.utf8), [0xEF, 0xBB, 0xBF, 0x7B, 0x7D],
        [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D], Array("{\"a\":[[[[[[[[]]]]]]]]}".utf8), Array("{'a':1}".utf8),
        Array("{\"a\":1}\u{0}".utf8),
    ]

    @Test(arguments: badJSON)
    func `rejects header and payload that are no strict JSON objects`(json: [UInt8]) async throws {
        let bench = try Bench()
        let good = try Bench.token().split(separator: ".").map(String.init)
        #expect(await bench.failureCode("\(base64URL(json)).\(good[1]).\(good[2])") == "apple.malformed")
        let input = "\(good[0]).\(base64URL(json))"
        let signature = base64URL(try Bench.key.get().signature(over: Array(input.utf8)))
        #expect(await bench.failureCode("\(input).\(signature)") == "apple.malformed")
    }

    @Test func `rejects signatures that are not this key's over these bytes`() async throws {
        let bench = try Bench()
        let key = try Bench.key.get()
        let other = try SigningKey("RSAKEY1")
        let elliptic = try SigningKey("RSAKEY1", .p256)
        #expect(try await bench.failureCode(Bench.token(by: other)) == "apple.bad_signature")
        #expect(try await bench.failureCode(Bench.token(by: elliptic)) == "apple.bad_signature")
        let good = try Bench.token()
        let input = good.split(separator: ".").prefix(2).joined(separator: ".")
        let signature = try key.signature(over: Array(input.utf8))
        let shorter = Array(signature.dropLast())
        let zeros = [UInt8](repeating: 0, count: 256)
        for bad: [UInt8] in [[0], zeros, signature + [0], [0] + signature, shorter, signature.reversed()] {
            #expect(await bench.failureCode("\(input).\(base64URL(bad))") == "apple.bad_signature")
        }
        let payload = try Bench.token { $0.claims["sub"] = "\"someone-else\"" }.split(separator: ".")[1]
        #expect(
            await bench.failureCode("\(good.split(separator: ".")[0]).\(payload).\(base64URL(signature))")
                == "apple.bad_signature")
    }

    @Test func `rejects HMACs keyed with the public key in any form`() async throws {
        let bench = try Bench([("algorithms", .list(["RS256", "ES256"]))])
        let key = try Bench.key.get()
        let jwk = try key.jwk()
        let modulus = try #require(jwk["n"])
        for secret in [try key.publicPEM(), Array(modulus.utf8), Base64URL.decode(modulus) ?? [], []] {
            for algorithm in ["HS256", "HS384", "hs256"] {
                var token = Token(kid: key.identifier)
                token.header["alg"] = JSONText(string: algorithm)
                #expect(await bench.failureCode(token.signed(byHMAC: secret)) == "apple.alg_not_allowed")
            }
            #expect(await bench.failureCode(Token(kid: key.identifier).signed(byHMAC: secret)) == "apple.bad_signature")
        }
    }

    @Test func `accepts ES256 where it is configured and only with its own keys`() async throws {
        let bench = try Bench([("algorithms", .list(["RS256", "ES256"]))])
        let key = try Bench.ellipticKey.get()
        let token = try Bench.token(by: key) { $0.header["alg"] = "\"ES256\"" }
        #expect(await bench.failureCode(token) == nil)
        #expect(try await bench.failureCode(Bench.token()) == nil)
        #expect(try await bench.failureCode(Bench.token(by: key)) == "apple.key_unusable")
        #expect(try await bench.failureCode(Bench.token { $0.header["alg"] = "\"ES256\"" }) == "apple.key_unusable")
        #expect(try await Bench().failureCode(token) == "apple.alg_not_allowed")
        let input = token.split(separator: ".").prefix(2).joined(separator: ".")
        #expect(
            await bench.failureCode("\(input).\(base64URL([UInt8](repeating: 0, count: 64)))") == "apple.bad_signature")
    }

    @Test func `a flood of made-up keys costs one request`() async throws {
        let bench = try Bench()
        #expect(try await bench.failureCode(Bench.token()) == nil)
        for number in 0..<200 {
            #expect(
                try await bench.failureCode(Bench.token { $0.header["kid"] = JSONText(string: "k\(number)") })
                    == "apple.unknown_key")
        }
        #expect(bench.issuer.fetches == 2)
    }
}
