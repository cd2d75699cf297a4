import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import MartletTesting
import Testing

/// The kinds of keys in a document, beyond RSA for RS256 and P-256.
@Suite struct KeyKindTests {
    static let everything = Set(SignatureAlgorithm.allCases)
    static let good = Result { try KeySetTests.entry(SigningKey("GOOD", .p256)) }

    /// Why the only other key of a document was skipped; `nil` if it was used.
    static func reason(_ entry: String, allowing allowed: Set<SignatureAlgorithm> = everything) throws -> String? {
        let set = try KeySet(
            document: Array("{\"keys\":[\(entry),\(good.get())]}".utf8), allowing: allowed.union([.es256]))
        #expect(set.keys.count + set.skipped.count == 2)
        return set.skipped.first?.reason
    }

    static func entry(_ kind: KeyOfKind, _ changes: [String: String?] = [:]) throws -> String {
        var members = try kind.signer.get().jwk().mapValues { "\"\($0)\"" }
        for (name, value) in changes { members[name] = value }
        return "{" + members.map { "\"\($0.key)\":\($0.value)" }.sorted().joined(separator: ",") + "}"
    }

    @Test(arguments: KeyOfKind.all)
    func `every kind is used, with and without alg, and not where it is not allowed`(kind: KeyOfKind) throws {
        #expect(try Self.reason(Self.entry(kind)) == nil)
        #expect(try Self.reason(Self.entry(kind, ["alg": nil])) == nil)
        #expect(try Self.reason(Self.entry(kind, ["alg": nil, "use": nil, "key_ops": #"["verify","x"]"#])) == nil)
        #expect(try Self.reason(Self.entry(kind, ["x5c": #"["AAAA"]"#, "x5t": #""AAAA""#])) == nil)
        guard kind.testDescription != "P-256" else { return }
        let names = kind.algorithms.map(\.rawValue)
        #expect(
            try Self.reason(Self.entry(kind, ["alg": nil]), allowing: [])
                == "\(names.joined(separator: ", ")) is not allowed")
        #expect(try Self.reason(Self.entry(kind), allowing: []) == "\(names[0]) is not allowed")
    }

    @Test func `an RSA key without alg serves the allowed algorithms of RSA`() throws {
        let entry = try Self.entry(KeyOfKind.all[0], ["alg": nil])
        let document = Array("{\"keys\":[\(entry)]}".utf8)
        let id = try #require(KeyID("key"))
        for allowed: Set<SignatureAlgorithm> in [[.rs256], [.ps512, .es256], [.rs512, .ps256, .edDSA, .hs256]] {
            let key = try #require(try KeySet(document: document, allowing: allowed).keys[id])
            #expect(Set(key.algorithms) == allowed.intersection(KeyOfKind.all[0].algorithms))
        }
        #expect(throws: JOSEError(.badKeySet, "")) { try KeySet(document: document, allowing: [.es256, .hs256]) }
    }

    @Test(arguments: KeyOfKind.all)
    func `alg must be one of the kind`(kind: KeyOfKind) throws {
        for algorithm in SignatureAlgorithm.allCases {
            let reason = try Self.reason(Self.entry(kind, ["alg": "\"\(algorithm.rawValue)\""]))
            #expect(reason == (kind.algorithms.contains(algorithm) ? nil : "it is for another algorithm"))
        }
        for name in [#""RSA-OAEP""#, #""ECDH-ES""#, #""none""#, #""rs256""#, "null", "[]", #"["RS256"]"#] {
            #expect(try Self.reason(Self.entry(kind, ["alg": name])) == "it is for another algorithm")
        }
    }

    @Test(arguments: KeyOfKind.all)
    func `keys for something else are skipped`(kind: KeyOfKind) throws {
        #expect(try Self.reason(Self.entry(kind, ["use": #""enc""#])) == "it is not for signatures")
        #expect(try Self.reason(Self.entry(kind, ["use": #""SIG""#])) == "it is not for signatures")
        for operations in ["[]", #"["sign"]"#, #""verify""#, #"["encrypt","wrapKey"]"#, #"["Verify"]"#] {
            #expect(try Self.reason(Self.entry(kind, ["key_ops": operations])) == "it is not for verifying")
        }
    }

    @Test(arguments: KeyOfKind.all)
    func `private keys are skipped`(kind: KeyOfKind) throws {
        for name in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
            #expect(try Self.reason(Self.entry(kind, [name: #""AAAA""#])) == "it is private: it has '\(name)'")
            #expect(try Self.reason(Self.entry(kind, [name: "null"])) == "it is private: it has '\(name)'")
        }
    }

    @Test func `secrets are skipped, whatever they are for`() throws {
        let secret = Base64URL.encode([UInt8](repeating: 7, count: 64))
        for algorithm in ["HS256", "HS384", "HS512", "RS256", "A256GCM"] {
            let entry = #"{"kty":"oct","kid":"key","use":"sig","alg":"\#(algorithm)","k":"\#(secret)"}"#
            #expect(try Self.reason(entry) == "it is symmetric: a secret must be configured")
            #expect(throws: JOSEError(.badKeySet, "")) {
                try KeySet(document: Array("{\"keys\":[\(entry)]}".utf8), allowing: Self.everything)
            }
        }
        #expect(try Self.reason(#"{"kty":"oct","kid":"key"}"#) == "it is symmetric: a secret must be configured")
    }

    @Test(arguments: KeyOfKind.all[1...3])
    func `points that are not of their curve are skipped`(kind: KeyOfKind) throws {
        let jwk = try kind.signer.get().jwk()
        let x = try #require(jwk["x"].flatMap { Base64URL.decode($0) })
        let y = try #require(jwk["y"].flatMap { Base64URL.decode($0) })
        func text(_ bytes: [UInt8]) -> String { "\"\(Base64URL.encode(bytes))\"" }
        var moved = y
        moved[moved.count - 1] ^= 1
        let zeros = [UInt8](repeating: 0, count: x.count)
        for (x, y) in [
            (x, moved), (y, x), (zeros, zeros), (x, zeros), (zeros.map { _ in 0xFF }, y), ([0] + x, y), (x, [0] + y),
            (Array(x.dropLast()), y), (x, Array(y.dropFirst())), ([], []), (x, []), (x + y, []),
        ] {
            let reason = try Self.reason(Self.entry(kind, ["x": text(x), "y": text(y)]))
            #expect(reason?.contains("bad_key") == true || reason?.contains("bytes") == true, "\(reason ?? "used")")
        }
        #expect(try Self.reason(Self.entry(kind, ["y": nil])) == "'y' is not base64url")
        for curve in ["P-192", "secp256k1", "P-256K", "p-256", "Ed25519", "prime256v1"] {
            let reason = try Self.reason(Self.entry(kind, ["crv": "\"\(curve)\""]))
            #expect(reason == "its curve is not P-256, P-384 or P-521")
        }
        for other in ["P-256", "P-384", "P-521"] where other != kind.testDescription {
            #expect(try Self.reason(Self.entry(kind, ["crv": "\"\(other)\"", "alg": nil])) != nil)
        }
    }

    @Test(arguments: KeyOfKind.all[4...5])
    func `keys of EdDSA are points of their curve`(kind: KeyOfKind) throws {
        let x = try #require(try kind.signer.get().jwk()["x"].flatMap { Base64URL.decode($0) })
        for bad in [[], Array(x.dropLast()), x + [0], [0] + x, [UInt8](repeating: 0xFF, count: x.count)] {
            let reason = try Self.reason(Self.entry(kind, ["x": "\"\(Base64URL.encode(bad))\""]))
            #expect(reason?.contains("crypto.bad_key") == true, "\(reason ?? "used")")
        }
        #expect(try Self.reason(Self.entry(kind, ["x": nil])) == "'x' is not base64url")
        for curve in ["X25519", "X448", "P-256", "ed25519", ""] {
            let reason = try Self.reason(Self.entry(kind, ["crv": "\"\(curve)\""]))
            #expect(reason == "its curve is not Ed25519 or Ed448")
        }
        let other = kind.testDescription == "Ed448" ? "Ed25519" : "Ed448"
        #expect(try Self.reason(Self.entry(kind, ["crv": "\"\(other)\""])) != nil)
        for type in ["EC", "RSA", "okp", "OKP2"] {
            #expect(try Self.reason(Self.entry(kind, ["kty": "\"\(type)\""])) != nil)
        }
    }

    @Test func `keys of several kinds may have one ID`() throws {
        let entries = try KeyOfKind.all.map { try Self.entry($0, ["alg": nil]) }
        let set = try KeySet(
            document: Array("{\"keys\":[\((entries + [Self.good.get()]).joined(separator: ","))]}".utf8),
            allowing: Self.everything)
        #expect(set.keys.count == 2 && set.skipped.isEmpty)
        let key = try #require(set.keys.values.first { $0.id.text != "GOOD" })
        #expect(Set(key.algorithms) == Set(KeyOfKind.all.flatMap(\.algorithms)))
        let message = Array("x".utf8)
        for kind in KeyOfKind.all {
            for algorithm in kind.algorithms {
                let signature = try kind.signer.get().signature(over: message, as: algorithm.rawValue)
                #expect(key.verify(signature: signature, signingInput: message, as: algorithm), "\(algorithm)")
            }
        }
    }
}
