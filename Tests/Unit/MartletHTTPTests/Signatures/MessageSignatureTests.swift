import MartletCore
import MartletCrypto
import MartletTesting
import Testing

@testable import MartletHTTP

@Suite struct MessageSignatureTests {
    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func pem(_ body: String) -> Secret {
        Secret("-----BEGIN PUBLIC KEY-----\n\(body)\n-----END PUBLIC KEY-----\n")
    }

    // RFC 9421 §B.1.5, §B.1.4 and §B.1.3.
    private static let secret =
        "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="
    private static let ed25519 = "MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs="
    private static let p256 =
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lf\n"
        + "w0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ=="

    @Test func `of the RFC with hmac-sha256 is valid`() throws {
        let input = "sig-b25=(\"date\" \"@authority\" \"content-type\");created=1618884473;keyid=\"test-shared-secret\""
        let signature = try MessageSignature(
            input: Self.bytes(input),
            signature: Self.bytes("sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:"))
        #expect(signature.keyID == "test-shared-secret" && signature.created == 1_618_884_473)
        let base = try signature.base(of: SignedRequests.rfc)
        #expect(
            String(decoding: base, as: UTF8.self) == """
                "date": Tue, 20 Apr 2021 02:07:55 GMT
                "@authority": example.com
                "content-type": application/json
                "@signature-params": \(input.dropFirst("sig-b25=".count))
                """)
        let secret = try #require(Base64.decode(Self.bytes(Self.secret)[...], padding: .required))
        let key = try MessageSignatureKey(secret: Secret(secret))
        #expect(key.verify(signature.signature, over: base))
        #expect(!key.verify(signature.signature, over: base + [0x0A]))
        #expect(!key.verify(Array(signature.signature.dropLast()), over: base))
        #expect(!key.verify([], over: base))
    }

    @Test func `of the RFC with ed25519 is valid`() throws {
        let input =
            "(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\")"
            + ";created=1618884473;keyid=\"test-key-ed25519\""
        let text = "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
        let signature = try MessageSignature(
            input: Self.bytes("sig-b26=\(input)"), signature: Self.bytes("sig-b26=:\(text):"))
        let base = try signature.base(of: SignedRequests.rfc)
        #expect(
            String(decoding: base, as: UTF8.self) == """
                "date": Tue, 20 Apr 2021 02:07:55 GMT
                "@method": POST
                "@path": /foo
                "@authority": example.com
                "content-type": application/json
                "content-length": 18
                "@signature-params": \(input)
                """)
        let key = try MessageSignatureKey(pem: Self.pem(Self.ed25519), for: .ed25519)
        #expect(key.verify(signature.signature, over: base))
        var other = SignedRequests.rfc
        other.method = Self.bytes("PUT")
        #expect(!key.verify(signature.signature, over: try signature.base(of: other)))
    }

    /// RFC 9421 §B.2.4 signs a response, which the gateway does not read; the base is taken from it.
    @Test func `of the RFC with ecdsa-p256-sha256 is valid, and its component rejected`() throws {
        let input = "(\"@status\" \"content-type\" \"content-digest\" \"content-length\")"
        let parameters = ";created=1618884473;keyid=\"test-key-ecc-p256\""
        let base = """
            "@status": 200
            "content-type": application/json
            "content-digest": \
            sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:
            "content-length": 23
            "@signature-params": \(input)\(parameters)
            """
        let text = "wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw=="
        let signature = try #require(Base64.decode(Self.bytes(text)[...], padding: .required))
        let key = try MessageSignatureKey(pem: Self.pem(Self.p256), for: .ecdsaP256SHA256)
        #expect(key.verify(signature, over: Self.bytes(base)))
        #expect(!key.verify(signature, over: Self.bytes(base + "\n")))
        #expect(
            SignedRequests.code(input: "a=\(input)\(parameters)", signature: "a=:\(text):")
                == .signatureComponentNotAllowed)
    }

    private static let good = "(\"@method\");created=1;keyid=\"k\""
    private static let fields: [(String, String, ErrorCode?)] = [
        ("a=\(good)", "a=:AAAA:", nil), ("a=();keyid=\"k\"", "a=:AAAA:", nil), ("a=\(good)", "a=::", nil),
        ("", "", .signatureMissing), ("", "a=:AAAA:", .signatureLabelMismatch),
        ("a=\(good)", "", .signatureLabelMismatch),
        ("a=\(good)", "b=:AAAA:", .signatureLabelMismatch),
        ("a=\(good), b=\(good)", "a=:AAAA:, b=:AAAA:", .signatureRepeated),
        ("a=\(good), b=\(good)", "a=:AAAA:", .signatureRepeated),
        ("a=\(good)", "a=:AAAA:, b=:AAAA:", .signatureRepeated),
        ("a=\(good), a=\(good)", "a=:AAAA:", .signatureMalformed),
        ("a=\(good)", "a=:AAAA:,a=:AAAA:", .signatureMalformed),
        ("a=\"@method\";keyid=\"k\"", "a=:AAAA:", .signatureMalformed), ("a", "a=:AAAA:", .signatureMalformed),
        ("a=\(good)", "a=AAAA", .signatureMalformed), ("a=\(good)", "a=\"AAAA\"", .signatureMalformed),
        ("a=\(good)", "a=(:AAAA:)", .signatureMalformed), ("a=\(good)", "a=:AAAA:;x", .signatureMalformed),
        ("a=\(good)", "a=:AAA:", .signatureMalformed), ("a=\(good)", "A=:AAAA:", .signatureMalformed),
        ("a=(\"@method)", "a=:AAAA:", .signatureMalformed), ("a=\(good);created=2", "a=:AAAA:", .signatureMalformed),
        ("a=\(good);x=1", "a=:AAAA:", .signatureUnknownParameter), ("a=\(good);Alg=1", "a=:AAAA:", .signatureMalformed),
        ("a=(\"@method\");created=1", "a=:AAAA:", .signatureKeyMissing),
        ("a=();keyid=k", "a=:AAAA:", .signatureBadParameter), ("a=();keyid", "a=:AAAA:", .signatureBadParameter),
        ("a=();keyid=\"\"", "a=:AAAA:", .signatureBadParameter),
        ("a=();keyid=\"k\";created=1.0", "a=:AAAA:", .signatureBadParameter),
        ("a=();keyid=\"k\";created=\"1\"", "a=:AAAA:", .signatureBadParameter),
        ("a=();keyid=\"k\";expires", "a=:AAAA:", .signatureBadParameter),
        ("a=();keyid=\"k\";nonce=1", "a=:AAAA:", .signatureBadParameter),
        ("a=();keyid=\"k\";nonce=\"\"", "a=:AAAA:", .signatureBadParameter),
        ("a=();keyid=\"k\";alg=ed25519", "a=:AAAA:", .signatureBadParameter),
        ("a=();keyid=\"k\";tag=:AAAA:", "a=:AAAA:", .signatureBadParameter),
        ("a=();keyid=\"\(String(repeating: "k", count: 256))\"", "a=:AAAA:", nil),
        ("a=();keyid=\"\(String(repeating: "k", count: 257))\"", "a=:AAAA:", .signatureBadParameter),
    ]

    @Test(arguments: fields)
    func `is one pair of fields with known parameters`(input: String, signature: String, code: ErrorCode?) {
        #expect(SignedRequests.code(input: input, signature: signature) == code)
    }

    private static let components: [(String, ErrorCode?)] = [
        ("\"@method\" \"@authority\" \"@scheme\" \"@target-uri\" \"@request-target\" \"@path\" \"@query\"", nil),
        ("\"@query-param\";name=\"a\" \"@query-param\";name=\"b\"", nil),
        ("\"x\" \"x\";bs \"x\";key=\"a\" \"x\";key=\"b\"", nil), ("\"content-digest\" \"x_y.z\"", nil),
        ("\"@method\" \"@path\" \"@method\"", .signatureRepeatedComponent),
        ("\"x\" \"x\"", .signatureRepeatedComponent),
        ("\"x\";bs \"x\";bs=?1", .signatureRepeatedComponent),
        ("\"@query-param\";name=\"a\" \"@query-param\";name=\"a\"", .signatureRepeatedComponent),
        ("\"@status\"", .signatureComponentNotAllowed), ("\"@signature-params\"", .signatureComponentNotAllowed),
        ("\"@method\";req", .signatureComponentNotAllowed), ("\"x\";req", .signatureComponentNotAllowed),
        ("\"x\";key=\"a\";req", .signatureComponentNotAllowed),
        ("\"@metho\"", .signatureUnknownComponent), ("\"@\"", .signatureUnknownComponent),
        ("\"@Method\"", .signatureUnknownComponent), ("\"@request-response\"", .signatureUnknownComponent),
        ("\"x\";sf", .signatureUnsupportedComponent), ("\"x\";tr", .signatureUnsupportedComponent),
        ("\"x\";bs;key=\"a\"", .signatureUnsupportedComponent), ("\"x\";y", .signatureUnsupportedComponent),
        ("\"@path\";bs", .signatureUnsupportedComponent), ("\"@query\";name=\"a\"", .signatureUnsupportedComponent),
        ("\"x\";bs=1", .signatureBadComponent), ("\"x\";bs=?0", .signatureBadComponent),
        ("\"x\";key", .signatureBadComponent), ("\"x\";key=a", .signatureBadComponent),
        ("\"@query-param\"", .signatureBadComponent), ("\"@query-param\";name=a", .signatureBadComponent),
        ("\"@query-param\";name=\"a\";bs", .signatureBadComponent),
        ("\"X\"", .signatureBadComponent), ("\"Content-Type\"", .signatureBadComponent),
        ("\"\"", .signatureBadComponent),
        ("\"x y\"", .signatureBadComponent), ("\"x:\"", .signatureBadComponent), ("x", .signatureBadComponent),
        ("1", .signatureBadComponent), (":AAAA:", .signatureBadComponent),
    ]

    @Test(arguments: components)
    func `covers components of requests, each once`(components: String, code: ErrorCode?) {
        #expect(SignedRequests.code(input: "a=(\(components));keyid=\"k\"", signature: "a=:AAAA:") == code)
    }

    @Test(arguments: [(32, nil as ErrorCode?), (33, .signatureTooMany), (129, .signatureTooMany)])
    func `covers at most 32 components`(count: Int, code: ErrorCode?) {
        let components = (0..<count).map { "\"x\($0)\"" }.joined(separator: " ")
        #expect(SignedRequests.code(input: "a=(\(components));keyid=\"k\"", signature: "a=:AAAA:") == code)
    }

    @Test func `components of a configuration have no parameters`() throws {
        #expect(try SignatureComponent(named: "@method").source == .method)
        #expect(try SignatureComponent(named: "content-type").source == .field("content-type"))
        for (name, code) in [
            ("@query-param", ErrorCode.signatureBadComponent), ("Date", .signatureBadComponent),
            ("@status", .signatureComponentNotAllowed), ("@x", .signatureUnknownComponent),
        ] {
            #expect(throws: MessageSignatureError(code, "")) { try SignatureComponent(named: name) }
        }
    }

    @Test func `keys are bound to their algorithm`() throws {
        let keys = try [
            MessageSignatureAlgorithm.ed25519: SigningKey("k", .ed25519).publicPEM(),
            .ecdsaP256SHA256: SigningKey("k", .p256).publicPEM(),
        ]
        for (kind, pem) in keys {
            for algorithm in MessageSignatureAlgorithm.allCases {
                let code: ErrorCode?
                do throws(CryptoError) {
                    _ = try MessageSignatureKey(pem: Secret(pem), for: algorithm)
                    code = nil
                } catch { code = error.code }
                #expect(code == (algorithm == kind ? nil : .cryptoBadKey))
            }
        }
        for pem in [try SigningKey("k", .p256).privatePEM(), "", "-----BEGIN PUBLIC KEY-----\nAAAA\n"] {
            #expect { try MessageSignatureKey(pem: Secret(pem), for: .ecdsaP256SHA256) } throws: {
                ($0 as? CryptoError)?.code == .cryptoBadKey
            }
        }
        #expect { try MessageSignatureKey(secret: Secret([UInt8](repeating: 7, count: 31))) } throws: {
            ($0 as? CryptoError)?.code == .cryptoWeakKey
        }
    }
}
