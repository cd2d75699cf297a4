import Foundation
import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import Testing

/// Project Wycheproof's tokens and key sets.
@Suite(
    .enabled(
        if: ProcessInfo.processInfo.environment["MARTLET_WYCHEPROOF"] != nil, "MARTLET_WYCHEPROOF is not set"))
struct WycheproofTokenTests {
    static let everything = Set(SignatureAlgorithm.allCases)

    /// Whether a token verifies with the keys of a document.
    ///
    /// The payloads of these tokens are not claims, so header and signature are parsed beside an empty claims set.
    static func isValid(_ token: String, keys: [JSONValue], secret: HMACKey?) throws -> Bool {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, Base64URL.decode(String(parts[1])) != nil,
            let jws = try? CompactJWS(Array("\(parts[0]).e30.\(parts[2])".utf8)),
            let algorithm = try? jws.algorithm(among: everything), (try? jws.checkHeaderFields()) != nil
        else { return false }
        let input = Array("\(parts[0]).\(parts[1])".utf8)
        if let secret {
            return secret.algorithm == algorithm && secret.verify(signature: jws.signature, signingInput: input)
        }
        let document = JSON.write(["keys": .array(keys)] as JSONObject)
        guard let id = try? jws.keyID(), let key = try? KeySet(document: document, allowing: everything).keys[id] else {
            return false
        }
        return key.verify(signature: jws.signature, signingInput: input, as: algorithm)
    }

    /// A configured secret, from the JWK that a group has.
    static func secret(_ jwk: JSONObject?) throws -> HMACKey? {
        guard let jwk, jwk["kty"] == "oct", let bytes = jwk["k"]?.string.flatMap({ Base64URL.decode($0) }) else {
            return nil
        }
        return try jwk["alg"]?.string.flatMap { SignatureAlgorithm(rawValue: $0) }
            .map { try HMACKey(Secret(bytes), algorithm: $0) }
    }

    /// Where this verifier is stricter than the file: by the vector's number.
    static let stricter: [Int64: String] = [
        346: "the key's alg is PS256, the token's PS384", 350: "the key's alg is PS256, the token's PS384",
        347: "the key's alg is ES521, which is none", 351: "the key's alg is ES521, which is none",
        372: "a character that is not base64url", 373: "a character that is not base64url",
    ]

    /// The same bytes as 357, which is valid: the padding that these are about is not in the file.
    static let copies: Set<Int64> = [367, 370]

    @Test func `tokens`() throws {
        var (accepted, rejected, strict) = (0, 0, 0)
        var disagreements: [String] = []
        for group in try WycheproofTests.groups("json_web_signature_test.json") {
            let secret = try Self.secret(group["private"]?.object)
            let keys = group["public"].map { [$0] } ?? []
            for test in WycheproofTests.tests(group) {
                let isValid = try Self.isValid(test["jws"]?.string ?? "", keys: keys, secret: secret)
                accepted += isValid ? 1 : 0
                rejected += isValid ? 0 : 1
                let number = WycheproofTests.number(test)
                if Self.stricter[number] != nil {
                    #expect(!isValid)
                    strict += 1
                } else if isValid != (test["result"] == "valid" || Self.copies.contains(number)) {
                    disagreements.append("\(group["comment"]?.string ?? "") \(number) \(test["comment"]?.string ?? "")")
                }
            }
        }
        print("json_web_signature_test.json: \(accepted) accepted, \(rejected) rejected, \(strict) by stricter rules")
        #expect(disagreements == [])
        #expect(accepted > 30 && rejected > 300)
    }

    /// The valid ones with secrets in a key set, which are never read from one.
    static let secrets: Set<Int64> = [2, 13, 14, 15]

    @Test func `key sets`() throws {
        var (accepted, rejected) = (0, 0)
        var disagreements: [String] = []
        for group in try WycheproofTests.groups("json_web_key_test.json") {
            let keys = (group["public"] ?? group["private"])?.object?["keys"]?.array ?? []
            for test in WycheproofTests.tests(group) {
                let isValid = try Self.isValid(test["jws"]?.string ?? "", keys: keys, secret: nil)
                accepted += isValid ? 1 : 0
                rejected += isValid ? 0 : 1
                let number = WycheproofTests.number(test)
                let expected = test["result"] == "valid" && !Self.secrets.contains(number)
                if isValid != expected { disagreements.append("\(number) \(test["comment"]?.string ?? "")") }
            }
        }
        print("json_web_key_test.json: \(accepted) accepted, \(rejected) rejected")
        #expect(disagreements == [])
        #expect(accepted > 0 && rejected > 20)
    }
}
