import MartletConfig
import MartletCore
import MartletJSON
import MartletTesting
import Testing

@testable import SignedProvider

@Suite struct `Configuration of signed requests` {
    private static let secret = Base64.encode(Bench.secret, padding: .required)

    @Test(arguments: [
        ("keys: {}", "needs keys"),
        ("max_age: 1s", "needs keys"),
        ("keys: { a: { subject: a, secret: x } }", "algorithm"),
        ("keys: { a: { algorithm: rsa-v1_5-sha256, subject: a, secret: x } }", "algorithm"),
        ("keys: { a: { algorithm: hmac-sha256, secret: SECRET } }", "subject"),
        ("keys: { a: { algorithm: hmac-sha256, secret: SECRET, subject: \"\" } }", "subject"),
        ("keys: { a: { algorithm: hmac-sha256, subject: a } }", "needs secret_file"),
        ("keys: { a: { algorithm: hmac-sha256, subject: a, secret: \"AAAA\" } }", "fewer than 32 bytes"),
        ("keys: { a: { algorithm: hmac-sha256, subject: a, secret: \"no base64!\" } }", "not base64"),
        ("keys: { a: { algorithm: ed25519, subject: a, secret: SECRET } }", "public_key_file alone"),
        ("keys: { a: { algorithm: ed25519, subject: a, public_key_file: /nonexistent.pem } }", "cannot read"),
        ("keys: { a: KEY }\ncovers: [\"@nothing\"]", "'@nothing'"),
        ("keys: { a: KEY }\ncovers: [\"@status\"]", "'@status'"),
        ("keys: { a: KEY }\ncovers: [Content-Type]", "'Content-Type'"),
        ("keys: { a: KEY }\ncovers: [\"@path\", \"@path\"]", "twice"),
        ("keys: { a: KEY }\nmax_age: 0s", "max_age"),
        ("keys: { a: KEY }\nmax_age: 2h", "max_age"),
        ("keys: { a: KEY }\nnonce: never", "nonce"),
        ("keys: { a: KEY }\nnonces: required", "nonces"),
    ])
    func `is rejected with a position`(yaml: String, message: String) {
        let key = "{ algorithm: hmac-sha256, subject: a, secret: SECRET }"
        let text = yaml.replacing("KEY", with: key).replacing("SECRET", with: "\"\(Self.secret)\"")
        let (configuration, diagnostics) = Bench.configuration(text)
        #expect(configuration == nil)
        let errors = diagnostics.sorted.filter { $0.severity == .error }
        #expect(errors.contains { $0.description.contains(message) }, "\(errors)")
        #expect(errors.allSatisfy { $0.location.line > 0 && !$0.description.contains(Self.secret) })
    }

    @Test func `takes public keys of their algorithm from files`() throws {
        let folder = try TemporaryFolder()
        let kinds = [
            "ed25519": ["ed25519"], "ecdsa-p256-sha256": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        ]
        var keys: [String: String] = [:]
        for (algorithm, kind) in kinds {
            let (own, file) = (folder.file("\(algorithm).key"), folder.file("\(algorithm).pem"))
            try CertificateAuthority.openssl(["genpkey", "-out", own, "-algorithm"] + kind)
            try CertificateAuthority.openssl(["pkey", "-in", own, "-pubout", "-out", file])
            keys[algorithm] = file
        }
        for (algorithm, file) in keys {
            let key = "{ algorithm: \(algorithm), subject: a, public_key_file: \(file) }"
            let (configuration, diagnostics) = Bench.configuration("keys: { a: \(key) }")
            #expect(configuration != nil, "\(diagnostics)")
        }
        let confused = "{ algorithm: ed25519, subject: a, public_key_file: \(keys["ecdsa-p256-sha256"] ?? "") }"
        #expect(Bench.configuration("keys: { a: \(confused) }").0 == nil)
    }

    @Test func `reads claims as texts, numbers, booleans and lists`() throws {
        let claims = "{ tier: gold, limit: 5, beta: true, quoted: \"5\", regions: [eu, us] }"
        let key = "{ algorithm: hmac-sha256, subject: a, secret: \(Self.secret), claims: \(claims) }"
        let read = try #require(Bench.configuration("keys: { a: \(key) }").0?.keys["a"]?.claims)
        #expect(read["tier"] == "gold" && read["limit"] == 5 && read["beta"] == true && read["quoted"] == "5")
        #expect(read["regions"] == ["eu", "us"])
    }
}
