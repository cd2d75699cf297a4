import Foundation
import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import Testing

/// Project Wycheproof's vectors, from the folder that `MARTLET_WYCHEPROOF` names: its `testvectors_v1`.
@Suite(
    .enabled(
        if: ProcessInfo.processInfo.environment["MARTLET_WYCHEPROOF"] != nil, "MARTLET_WYCHEPROOF is not set"))
struct WycheproofTests {
    static let hashes = ["SHA-256": 256, "SHA-384": 384, "SHA-512": 512]

    static func folder() throws -> String {
        try #require(ProcessInfo.processInfo.environment["MARTLET_WYCHEPROOF"])
    }

    static func files(_ prefix: String, _ suffix: String = "_test.json") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder())
            .filter { $0.hasPrefix(prefix) && $0.hasSuffix(suffix) }.sorted()
    }

    static func groups(_ file: String) throws -> [JSONObject] {
        let bytes = try Corpus.read("\(folder())/\(file)")
        let limits = JSONLimits(maximumDepth: 16, maximumBytes: bytes.count)
        let groups = try #require(try JSON.parse(bytes, limits: limits).object?["testGroups"]?.array)
        return groups.compactMap(\.object)
    }

    static func tests(_ group: JSONObject) -> [JSONObject] { (group["tests"]?.array ?? []).compactMap(\.object) }

    static func number(_ test: JSONObject) -> Int64 { test["tcId"]?.int64 ?? 0 }

    static func expectation(_ test: JSONObject) -> Expectation {
        switch test["result"] {
        case "valid": .valid
        case "invalid": .invalid
        default: .either
        }
    }

    /// Runs the vectors of a group with its key.
    static func run(
        _ group: JSONObject, _ parts: PublicKeyParts, _ algorithm: SignatureAlgorithm, into tally: inout Tally,
        expecting expectation: (JSONObject) -> Expectation = expectation
    ) throws {
        let key = try Corpus.key(parts, algorithm)
        for test in tests(group) {
            let (message, signature) = (bytes(test["msg"]), bytes(test["sig"]))
            let isValid = key?.verify(signature: signature, signingInput: message, as: algorithm) == true
            tally.add("\(number(test))", expectation(test), key: key, isValid: isValid)
        }
    }

    static func bytes(_ value: JSONValue?) -> [UInt8] { Corpus.hex(value?.string ?? "") }

    static func rsaKey(_ group: JSONObject) -> PublicKeyParts? {
        guard let key = group["publicKey"]?.object else { return nil }
        return .rsa(modulus: bytes(key["modulus"]), exponent: bytes(key["publicExponent"]))
    }

    @Test func `RSA with PKCS 1`() throws {
        for file in try Self.files("rsa_signature_") {
            var tally = Tally()
            for group in try Self.groups(file) {
                guard let bits = group["sha"]?.string.flatMap({ Self.hashes[$0] }) else { continue }
                let algorithm = try #require(SignatureAlgorithm(rawValue: "RS\(bits)"))
                try Self.run(group, #require(Self.rsaKey(group)), algorithm, into: &tally)
            }
            if tally.run > 0 { tally.finish(file) }
        }
    }

    @Test func `RSA with PSS`() throws {
        for file in try Self.files("rsa_pss_") {
            var tally = Tally()
            for group in try Self.groups(file) {
                guard let bits = group["sha"]?.string.flatMap({ Self.hashes[$0] }) else { continue }
                let algorithm = try #require(SignatureAlgorithm(rawValue: "PS\(bits)"))
                // Another mask or salt is not that of the algorithm, so that no signature with it may verify; where the
                // file expects another salt, the signature that it rejects for having ours is a good one here.
                let hasOurMask = group["mgf"] == "MGF1" && group["mgfSha"] == group["sha"]
                let hasOurSalt = group["sLen"]?.int64 == Int64(bits / 8)
                try Self.run(group, #require(Self.rsaKey(group)), algorithm, into: &tally) { test in
                    if hasOurMask && hasOurSalt { return Self.expectation(test) }
                    let isOurs = hasOurMask && test["comment"] == .string("s_len changed to \(bits / 8)")
                    return isOurs ? .valid : .invalid
                }
            }
            if tally.run > 0 { tally.finish(file) }
        }
    }

    static let curves: [(String, SignatureAlgorithm, Int)] = [
        ("ecdsa_secp256r1_sha256_p1363", .es256, 32), ("ecdsa_secp384r1_sha384_p1363", .es384, 48),
        ("ecdsa_secp521r1_sha512_p1363", .es512, 66),
    ]

    @Test(arguments: curves)
    func `ECDSA`(name: String, algorithm: SignatureAlgorithm, length: Int) throws {
        var tally = Tally()
        for group in try Self.groups("\(name)_test.json") {
            let key = try #require(group["publicKey"]?.object)
            let (x, y) = (
                Corpus.padded(Self.bytes(key["wx"]), to: length), Corpus.padded(Self.bytes(key["wy"]), to: length)
            )
            let parts: PublicKeyParts =
                switch algorithm {
                case .es256: .p256(x: x, y: y)
                case .es384: .p384(x: x, y: y)
                default: .p521(x: x, y: y)
                }
            try Self.run(group, parts, algorithm, into: &tally)
        }
        tally.finish(name)
        #expect(tally.withoutKey == 0)
    }

    @Test(arguments: ["ed25519_test.json", "ed448_test.json"])
    func `EdDSA`(file: String) throws {
        var tally = Tally()
        for group in try Self.groups(file) {
            let point = Self.bytes(group["publicKey"]?.object?["pk"])
            try Self.run(group, point.count == 32 ? .ed25519(x: point) : .ed448(x: point), .edDSA, into: &tally)
        }
        tally.finish(file)
    }

    /// The HMACs of HS256, HS384 and HS512, whole: shortened ones are not those of the algorithms.
    @Test(arguments: [256, 384, 512])
    func `HMAC`(bits: Int) throws {
        let algorithm = try #require(SignatureAlgorithm(rawValue: "HS\(bits)"))
        var (accepted, rejected, short) = (0, 0, 0)
        for group in try Self.groups("hmac_sha\(bits)_test.json") {
            for test in Self.tests(group) {
                let secret = Self.bytes(test["key"])
                guard secret.count >= bits / 8 else {
                    #expect(throws: CryptoError.self) { try HMACKey(Secret(secret), algorithm: algorithm) }
                    short += 1
                    continue
                }
                let isValid = try HMACKey(Secret(secret), algorithm: algorithm)
                    .verify(signature: Self.bytes(test["tag"]), signingInput: Self.bytes(test["msg"]))
                let expected = test["result"] == "valid" && group["tagSize"]?.int64 == Int64(bits)
                #expect(isValid == expected, "\(Self.number(test))")
                accepted += isValid ? 1 : 0
                rejected += isValid ? 0 : 1
            }
        }
        print("hmac_sha\(bits): \(accepted) accepted, \(rejected) rejected, \(short) secrets too short")
        #expect(accepted > 0 && rejected > 0 && short > 0)
    }
}
