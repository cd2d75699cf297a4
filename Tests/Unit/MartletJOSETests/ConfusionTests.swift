import MartletCore
import MartletCrypto
import MartletJOSE
import MartletTesting
import Testing

/// Tokens whose header says something else than their key, from the document to the result.
@Suite struct ConfusionTests {
    /// The result for a token with the keys of a document.
    static func result(
        _ token: String, allowing allowed: Set<SignatureAlgorithm>, alg: String? = nil
    ) throws -> String {
        let document = try "{\"keys\":[\(names.map { try entry($0, alg: alg) }.joined(separator: ","))]}"
        let keys = try KeySet(document: Array(document.utf8), allowing: allowed).keys
        do throws(JOSEError) {
            let jws = try CompactJWS(Array(token.utf8))
            let algorithm = try jws.algorithm(among: allowed)
            try jws.checkHeaderFields()
            guard let key = keys[try jws.keyID()] else { return "unknown_key" }
            guard key.serves(algorithm) else { return "key_unusable" }
            let isValid = key.verify(signature: jws.signature, signingInput: jws.signingInput, as: algorithm)
            return isValid ? "good" : "bad_signature"
        } catch { return error.reason.rawValue }
    }

    static let everything = Set(SignatureAlgorithm.allCases)
    static let names = ["RSA", "P-256", "P-384", "P-521", "Ed25519", "Ed448"]

    static func kind(_ name: String) throws -> KeyOfKind {
        try #require(KeyOfKind.all.first { $0.testDescription == name })
    }

    private static func entry(_ name: String, alg: String?) throws -> String {
        var members = try kind(name).signer.get().jwk(["kid": name])
        members["alg"] = name == "RSA" ? alg : nil
        return "{" + members.map { "\"\($0.key)\":\"\($0.value)\"" }.sorted().joined(separator: ",") + "}"
    }

    static func input(_ alg: String, kid: String, _ more: String = "", payload: String = #"{"sub":"a"}"#) -> String {
        let header = "{\"alg\":\"\(alg)\",\"kid\":\"\(kid)\"\(more)}"
        return "\(Base64URL.encode(Array(header.utf8))).\(Base64URL.encode(Array(payload.utf8)))"
    }

    static func token(
        _ alg: String, kid: String, signedAs algorithm: String? = nil, _ more: String = ""
    ) throws -> String {
        let input = input(alg, kid: kid, more)
        let signer = try kind(kid).signer.get()
        let signature = try signer.signature(over: Array(input.utf8), as: algorithm ?? alg)
        return "\(input).\(Base64URL.encode(signature))"
    }

    @Test(arguments: names)
    func `the algorithms of each key are accepted`(name: String) throws {
        for algorithm in try Self.kind(name).algorithms {
            let token = try Self.token(algorithm.rawValue, kid: name)
            #expect(try Self.result(token, allowing: Self.everything) == "good")
            #expect(try Self.result(token, allowing: Self.everything.subtracting([algorithm])) == "alg_not_allowed")
        }
    }

    @Test(arguments: names)
    func `an algorithm of another kind of key does not verify`(name: String) throws {
        let own = try Self.kind(name).algorithms
        for algorithm in SignatureAlgorithm.allCases where !own.contains(algorithm) {
            let token = try Self.token(algorithm.rawValue, kid: name, signedAs: own[0].rawValue)
            #expect(try Self.result(token, allowing: Self.everything) == "key_unusable", "\(algorithm)")
        }
    }

    @Test func `PKCS 1 and PSS are not exchanged`() throws {
        for (claimed, made) in [("RS256", "PS256"), ("PS256", "RS256"), ("RS384", "PS384"), ("PS512", "RS512")] {
            let token = try Self.token(claimed, kid: "RSA", signedAs: made)
            #expect(try Self.result(token, allowing: Self.everything) == "bad_signature")
            #expect(try Self.result(token, allowing: Self.everything, alg: made) == "key_unusable")
        }
    }

    @Test func `alg of an RSA key is the only one that it serves`() throws {
        for algorithm in try Self.kind("RSA").algorithms {
            for other in try Self.kind("RSA").algorithms {
                let token = try Self.token(other.rawValue, kid: "RSA")
                #expect(
                    try Self.result(token, allowing: Self.everything, alg: algorithm.rawValue)
                        == (other == algorithm ? "good" : "key_unusable"))
            }
        }
    }

    @Test func `a public key is no secret, even where HMACs are allowed`() throws {
        let signer = try Self.kind("RSA").signer.get()
        let modulus = try #require(try signer.jwk()["n"])
        let document = Array(try Self.entry("RSA", alg: nil).utf8)
        for secret in [try signer.publicPEM(), Array(modulus.utf8), Base64URL.decode(modulus) ?? [], document, []] {
            for bits in [256, 384, 512] {
                for (name, allowed) in [("HS\(bits)", "key_unusable"), ("RS\(bits)", "bad_signature")] {
                    let input = Self.input(name, kid: "RSA")
                    let token = "\(input).\(Base64URL.encode(hmac(bits: bits, key: secret, Array(input.utf8))))"
                    #expect(try Self.result(token, allowing: Self.everything) == allowed)
                    #expect(try Self.result(token, allowing: [.es256]) == "alg_not_allowed")
                }
            }
        }
    }

    @Test(arguments: ["none", "None", "NONE", "nOnE", "", "rs256", "RS256 ", "HS1", "RS1", "ES256K", "PS256\\u0000"])
    func `no other name is an algorithm`(name: String) throws {
        let token = try Self.token(name, kid: "RSA", signedAs: "RS256")
        #expect(try Self.result(token, allowing: Self.everything) == "alg_not_allowed")
        let parts = token.split(separator: ".")
        #expect(try Self.result("\(parts[0]).\(parts[1]).", allowing: Self.everything) == "malformed")
        #expect(try Self.result("\(parts[0]).\(parts[1])", allowing: Self.everything) == "malformed")
    }

    static let fields = [
        #","crit":["exp"],"exp":1"#, #","crit":[]"#, #","crit":["b64"],"b64":false"#, #","b64":true"#,
        #","b64":false"#, #","cty":"JWT""#, #","cty":"jwt""#, #","cty":"application/JWT""#, #","zip":"DEF""#,
        #","enc":"A128GCM""#, #","jwk":{}"#, #","jwk":null"#, #","typ":"JOSE""#, #","typ":"jwtx""#, #","typ":"""#,
        #","typ":"application/""#, #","typ":"text/jwt""#, #","typ":null"#,
    ]

    static let ignored = [
        #","x5t":"HlC0R12skxNZ1WQwmjOF_6t_tDE""#, #","x5t#S256":"AAAA""#, #","x5c":["MIIB"]"#, #","cty":"json""#,
        #","jku":"https://evil.example/keys""#, #","x5u":"https://evil.example/chain""#, #","more":{"a":[1]}"#,
        #","typ":"jwt""#, #","typ":"application/JWT""#,
    ]

    @Test(arguments: ignored)
    func `fields that are not understood are ignored, and the key is the one of the set`(field: String) throws {
        for name in Self.names {
            let algorithm = try Self.kind(name).algorithms[0].rawValue
            #expect(try Self.result(Self.token(algorithm, kid: name, field), allowing: Self.everything) == "good")
        }
        let jws = try CompactJWS(Array(Self.token("RS256", kid: "RSA", field).utf8))
        #expect((try? jws.checkNoUnusualFields()) == nil || field.contains("more"))
    }

    @Test(arguments: fields)
    func `fields that change the meaning of a token are rejected for every algorithm`(field: String) throws {
        for name in Self.names {
            let algorithm = try Self.kind(name).algorithms[0]
            let token = try Self.token(algorithm.rawValue, kid: name, field)
            #expect(try Self.result(token, allowing: Self.everything) == "header_not_allowed")
        }
    }

    @Test func `a payload is part of its token`() throws {
        for name in Self.names {
            let algorithm = try Self.kind(name).algorithms[0]
            let parts = try Self.token(algorithm.rawValue, kid: name).split(separator: ".")
            #expect(try Self.result("\(parts[0])..\(parts[2])", allowing: Self.everything) == "malformed")
            let other = Base64URL.encode(Array(#"{"sub":"b"}"#.utf8))
            #expect(
                try Self.result("\(parts[0]).\(other).\(parts[2])", allowing: Self.everything) == "bad_signature")
        }
        // The same header and signature over the bytes of an unencoded payload (RFC 7797).
        let header = Base64URL.encode(Array(#"{"alg":"RS256","kid":"RSA","b64":false,"crit":["b64"]}"#.utf8))
        let signature = try Self.kind("RSA").signer.get().signature(over: Array("\(header).{}".utf8))
        let encoded = Base64URL.encode(signature)
        #expect(try Self.result("\(header).e30.\(encoded)", allowing: [.rs256]) == "header_not_allowed")
        #expect(try Self.result("\(header).{}.\(encoded)", allowing: [.rs256]) == "malformed")
    }
}
