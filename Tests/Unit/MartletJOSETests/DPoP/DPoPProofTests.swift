import MartletCore
import MartletCrypto
import MartletTesting
import Testing

@testable import MartletJOSE

@Suite struct DPoPProofTests {
    /// The key of the RFC's examples, in their headers.
    private static let rfcHeader =
        "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0"
        + "RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6Il"
        + "AtMjU2In19"
    /// RFC 9449 §4.1, figure 2.
    private static let rfcLogin =
        rfcHeader + ".eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL"
        + "3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nf"
        + "bV37xRZT3Lg"
    /// RFC 9449 §7.1, figure 13.
    private static let rfcAccess =
        rfcHeader + ".eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZ"
        + "y9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBc"
        + "WtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA"

    private static func confirmation(
        _ proof: String, _ request: DPoPRequest = ProofInTheMaking.request, now: UnixTime = ProofInTheMaking.now,
        policy: DPoPPolicy = ProofInTheMaking.policy
    ) throws -> DPoPConfirmation {
        try DPoPProof(Array(proof.utf8), policy: policy).confirmation(for: request, policy: policy, now: now)
    }

    private static func target(_ text: String) throws -> DPoPTarget { try #require(DPoPTarget(text)) }

    @Test func `of the RFC are valid, and its thumbprint is found`() throws {
        let login = DPoPRequest(
            method: "POST", target: try Self.target("https://server.example.com/token"), accessToken: nil)
        let found = try Self.confirmation(Self.rfcLogin, login, now: UnixTime(seconds: 1_562_262_616))
        #expect(found.thumbprint == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
        #expect(found.acceptedUntil == UnixTime(seconds: 1_562_262_676))
        let access = DPoPRequest(
            method: "GET", target: try Self.target("https://resource.example.org/protectedresource"),
            accessToken: Array("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU".utf8))
        let other = try Self.confirmation(Self.rfcAccess, access, now: UnixTime(seconds: 1_562_262_618))
        #expect(other.thumbprint == found.thumbprint && other.replayKey != found.replayKey)
        for index in Self.rfcAccess.utf8.indices.suffix(60) where Self.rfcAccess.utf8[index] != UInt8(ascii: "A") {
            var changed = Array(Self.rfcAccess.utf8)
            changed[Self.rfcAccess.utf8.distance(from: Self.rfcAccess.startIndex, to: index)] = UInt8(ascii: "A")
            let code = ProofInTheMaking.code(
                of: String(decoding: changed, as: UTF8.self), for: access, now: UnixTime(seconds: 1_562_262_618))
            #expect(code == .dpopBadSignature)
        }
    }

    @Test func `are valid with every kind of key that is allowed`() throws {
        let kinds: [(SigningKey.Kind, SignatureAlgorithm)] = [
            (.p256, .es256), (.p384, .es384), (.p521, .es512), (.ed25519, .edDSA),
            (.rsa(bits: 2048), .rs256), (.rsa(bits: 4096), .rs256),
        ]
        for (kind, algorithm) in kinds {
            let proof = try ProofInTheMaking(SigningKey("k", kind))
            let text = try proof.signed()
            #expect(ProofInTheMaking.code(of: text) == nil, "\(kind)")
            var policy = ProofInTheMaking.policy
            policy.algorithms.remove(algorithm)
            #expect(ProofInTheMaking.code(of: text, policy: policy) == .dpopAlgorithmNotAllowed)
        }
        var proof = try ProofInTheMaking(SigningKey("k", .rsa(bits: 2048)))
        proof.header["alg"] = "\"PS256\""
        #expect(ProofInTheMaking.code(of: try proof.signed(as: "PS256")) == nil)
        #expect(ProofInTheMaking.code(of: try proof.signed(as: "RS256")) == .dpopBadSignature)
    }

    @Test func `give replay keys that depend on the key and jti alone`() throws {
        var proof = try ProofInTheMaking()
        let first = try Self.confirmation(proof.signed())
        proof.claims["iat"] = JSONText(Int(ProofInTheMaking.now.seconds) + 1)
        let second = try Self.confirmation(proof.signed())
        #expect(first.replayKey == second.replayKey && first.acceptedUntil != second.acceptedUntil)
        #expect(first.replayKey.utf8.count == 43)
        proof.claims["jti"] = "\"id-2\""
        #expect(try Self.confirmation(proof.signed()).replayKey != first.replayKey)
        let other = try Self.confirmation(ProofInTheMaking(SigningKey("other", .p256)).signed())
        #expect(other.replayKey != first.replayKey && other.thumbprint != first.thumbprint)
    }

    @Test func `are one for a request`() throws {
        let proof = Array("a".utf8)
        #expect(try DPoPProof.only(of: [proof]) == proof)
        #expect(throws: DPoPError(.dpopMissing, "")) { try DPoPProof.only(of: []) }
        #expect(throws: DPoPError(.dpopRepeated, "")) { try DPoPProof.only(of: [proof, proof]) }
        #expect(ProofInTheMaking.code(of: "") == .dpopMissing)
    }

    @Test func `are rejected for their form`() throws {
        let good = try ProofInTheMaking().signed()
        #expect(ProofInTheMaking.code(of: good) == nil)
        #expect(ProofInTheMaking.code(of: good + String(repeating: "A", count: 8192)) == .dpopTooLarge)
        for bad in [
            "a", "a.b", "..", good + ".", good + "=", "." + good, good + ".AAAA", good + " ", good + ", " + good,
        ] {
            #expect(ProofInTheMaking.code(of: bad) == .dpopMalformed, "\(bad)")
        }
        for length in stride(from: 1, to: good.utf8.count, by: 7) {
            #expect(ProofInTheMaking.code(of: String(good.prefix(length))) != nil)
        }
    }

    private static let headers: [(String, JSONText?, ErrorCode)] = [
        ("typ", nil, .dpopBadType), ("typ", "\"JWT\"", .dpopBadType), ("typ", "\"DPoP+JWT\"", .dpopBadType),
        ("typ", "\"application/dpop+jwt\"", .dpopBadType), ("typ", "\"at+jwt\"", .dpopBadType),
        ("typ", "null", .dpopBadType), ("typ", "[\"dpop+jwt\"]", .dpopBadType),
        ("alg", nil, .dpopAlgorithmNotAllowed), ("alg", "\"none\"", .dpopAlgorithmNotAllowed),
        ("alg", "\"HS256\"", .dpopAlgorithmNotAllowed), ("alg", "\"es256\"", .dpopAlgorithmNotAllowed),
        ("alg", "\"PS384\"", .dpopAlgorithmNotAllowed), ("alg", "null", .dpopAlgorithmNotAllowed),
        ("alg", "\"RS256\"", .dpopKeyMismatch), ("alg", "\"ES384\"", .dpopKeyMismatch),
        ("alg", "\"EdDSA\"", .dpopKeyMismatch),
        ("crit", "[]", .dpopHeaderNotAllowed), ("crit", "[\"exp\"]", .dpopHeaderNotAllowed),
        ("b64", "false", .dpopHeaderNotAllowed), ("b64", "true", .dpopHeaderNotAllowed),
        ("jku", "\"https://a.example\"", .dpopHeaderNotAllowed),
        ("x5u", "\"https://a.example\"", .dpopHeaderNotAllowed),
        ("x5c", "[]", .dpopHeaderNotAllowed), ("x5t", "\"AAAA\"", .dpopHeaderNotAllowed),
        ("x5t#S256", "\"AAAA\"", .dpopHeaderNotAllowed), ("zip", "\"DEF\"", .dpopHeaderNotAllowed),
        ("enc", "\"A128GCM\"", .dpopHeaderNotAllowed), ("cty", "\"JWT\"", .dpopHeaderNotAllowed),
        ("jwk", nil, .dpopKeyMissing), ("jwk", "null", .dpopBadKey), ("jwk", "\"key\"", .dpopBadKey),
        ("jwk", "{}", .dpopBadKey), ("jwk", "[]", .dpopBadKey),
        ("jwk", "{\"kty\":\"oct\",\"k\":\"AAAA\"}", .dpopKeyPrivate), ("jwk", "{\"kty\":\"oct\"}", .dpopKeyPrivate),
        ("jwk", "{\"kty\":\"EC\",\"crv\":\"secp256k1\",\"x\":\"AAAA\",\"y\":\"AAAA\"}", .dpopBadKey),
        ("jwk", "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}", .dpopBadKey),
    ]

    @Test(arguments: headers)
    func `are rejected for their header`(name: String, value: JSONText?, code: ErrorCode) throws {
        #expect(try ProofInTheMaking.code { $0.header[name] = value } == code)
    }

    @Test func `are rejected for their key`() throws {
        func code(_ changes: [String: JSONText?]) throws -> ErrorCode? {
            try ProofInTheMaking.code { $0.header["jwk"] = try ProofInTheMaking.jwk($0.key, changes) }
        }
        for name in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
            #expect(try code([name: "\"AAAA\""]) == .dpopKeyPrivate)
            #expect(try code([name: "null"]) == .dpopKeyPrivate)
        }
        #expect(try code(["use": "\"sig\"", "alg": "\"ES256\"", "kid": "\"a\"", "key_ops": "[\"verify\"]"]) == nil)
        #expect(try code(["use": "\"enc\""]) == .dpopBadKey)
        #expect(try code(["key_ops": "[\"sign\"]"]) == .dpopBadKey)
        #expect(try code(["alg": "\"ES384\""]) == .dpopKeyMismatch)
        #expect(try code(["alg": "null"]) == .dpopKeyMismatch)
        #expect(try code(["x": nil]) == .dpopBadKey)
        let small = try ProofInTheMaking(SigningKey("k", .rsa(bits: 1024)))
        #expect(ProofInTheMaking.code(of: try small.signed()) == .dpopWeakKey)
        let (mine, other) = (try ProofInTheMaking(), try SigningKey("other", .p256))
        #expect(ProofInTheMaking.code(of: try mine.signed(by: other)) == .dpopBadSignature)
    }

    private static let long = String(repeating: "j", count: 128)
    private static let claims: [(String, JSONText?, ErrorCode?)] = [
        ("jti", nil, .dpopBadID), ("jti", "\"\"", .dpopBadID), ("jti", "1", .dpopBadID), ("jti", "null", .dpopBadID),
        ("jti", JSONText(string: long), nil), ("jti", JSONText(string: long + "j"), .dpopBadID),
        ("htm", nil, .dpopMethodMissing), ("htm", "1", .dpopMethodMissing), ("htm", "\"GET\"", .dpopMethodMismatch),
        ("htm", "\"post\"", .dpopMethodMismatch), ("htm", "\"\"", .dpopMethodMismatch),
        ("htu", nil, .dpopBadURL), ("htu", "1", .dpopBadURL), ("htu", "\"/v1/orders\"", .dpopBadURL),
        ("htu", "\"https://u@api.example/v1/orders\"", .dpopBadURL),
        ("htu", "\"http://api.example/v1/orders\"", .dpopURLMismatch),
        ("htu", "\"https://api.example:8443/v1/orders\"", .dpopURLMismatch),
        ("htu", "\"https://api.example.evil/v1/orders\"", .dpopURLMismatch),
        ("htu", "\"https://api.example/v1/orders/\"", .dpopURLMismatch),
        ("htu", "\"https://api.example/\"", .dpopURLMismatch),
        ("htu", "\"HTTPS://API.example:443/v1/%6frders?page=2#top\"", nil),
        ("iat", nil, .dpopBadTime), ("iat", "\"1800000000\"", .dpopBadTime), ("iat", "1800000000.5", .dpopBadTime),
        ("iat", "1e9", .dpopBadTime), ("iat", "99999999999999999999", .dpopBadTime), ("iat", "null", .dpopBadTime),
        ("iat", "1799999940", nil), ("iat", "1799999939", .dpopTooOld), ("iat", "1800000005", nil),
        ("iat", "1800000006", .dpopInFuture), ("iat", "0", .dpopTooOld), ("iat", "-9223372036854775808", .dpopTooOld),
        ("iat", "9223372036854775807", .dpopInFuture),
        ("exp", "1800000001", nil), ("exp", "1800000000", .dpopTooOld), ("exp", "\"never\"", .dpopBadTime),
        ("nbf", "1800000005", nil), ("nbf", "1800000006", .dpopInFuture), ("nbf", "null", .dpopBadTime),
        ("ath", nil, .dpopTokenHashMissing), ("ath", "\"\"", .dpopTokenHashMismatch),
        ("ath", "null", .dpopTokenHashMismatch),
        ("ath", "\"FPlcM-1UXiivOYozpUrp7d117JnKzPF4YXuXNnfZmdV\"", .dpopTokenHashMismatch),
        ("ath", "\"FPlcM-1UXiivOYozpUrp7d117JnKzPF4YXuXNnfZmdU=\"", .dpopTokenHashMismatch),
        ("nonce", "\"anything\"", nil), ("nonce", "1", nil), ("iss", "\"a\"", nil),
    ]

    @Test(arguments: claims)
    func `are rejected for their claims`(name: String, value: JSONText?, code: ErrorCode?) throws {
        #expect(try ProofInTheMaking.code { $0.claims[name] = value } == code)
    }

    @Test func `need no ath where there is no access token`() throws {
        let login = DPoPRequest(method: "POST", target: ProofInTheMaking.request.target, accessToken: nil)
        var proof = try ProofInTheMaking()
        proof.claims["ath"] = nil
        #expect(ProofInTheMaking.code(of: try proof.signed(), for: login) == nil)
        #expect(ProofInTheMaking.code(of: try proof.signed()) == .dpopTokenHashMissing)
        let empty = DPoPRequest(method: "POST", target: login.target, accessToken: [])
        #expect(ProofInTheMaking.code(of: try proof.signed(), for: empty) == .dpopTokenHashMissing)
    }

    /// Matches no request of these tests.
    static var nowhere: DPoPTarget {
        guard let target = DPoPTarget("http://nowhere.invalid/") else { preconditionFailure("a URL") }
        return target
    }
}
