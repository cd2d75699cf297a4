import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import MartletTesting
import Testing

/// A key of every kind, and what it may verify.
struct KeyOfKind: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let signer: Result<SigningKey, any Error>
    let algorithms: [SignatureAlgorithm]

    init(_ name: String, _ kind: SigningKey.Kind, _ algorithms: [SignatureAlgorithm]) {
        testDescription = name
        signer = Result { try SigningKey("key", kind) }
        self.algorithms = algorithms
    }

    static let all = [
        KeyOfKind("RSA", .rsa(bits: 2048), [.rs256, .rs384, .rs512, .ps256, .ps384, .ps512]),
        KeyOfKind("P-256", .p256, [.es256]), KeyOfKind("P-384", .p384, [.es384]),
        KeyOfKind("P-521", .p521, [.es512]),
        KeyOfKind("Ed25519", .ed25519, [.edDSA]), KeyOfKind("Ed448", .ed448, [.edDSA]),
    ]

    var parts: PublicKeyParts {
        get throws {
            try PublicKeyParts(jwk: JSONObject(signer.get().jwk().map { ($0.key, .string($0.value)) }))
        }
    }

    func key(allowing allowed: Set<SignatureAlgorithm> = Set(SignatureAlgorithm.allCases)) throws -> VerificationKey {
        try VerificationKey(id: #require(KeyID("key")), parts: parts, allowing: allowed)
    }
}

@Suite struct AlgorithmTests {
    static let message = Array("the hall is dry".utf8)

    @Test(arguments: KeyOfKind.all)
    func `a signature verifies as the algorithm that made it and as no other`(kind: KeyOfKind) throws {
        let (signer, key) = (try kind.signer.get(), try kind.key())
        #expect(key.algorithms == kind.algorithms)
        for made in kind.algorithms {
            let signature = try signer.signature(over: Self.message, as: made.rawValue)
            for claimed in SignatureAlgorithm.allCases {
                #expect(key.serves(claimed) == kind.algorithms.contains(claimed))
                #expect(
                    key.verify(signature: signature, signingInput: Self.message, as: claimed) == (claimed == made),
                    "\(made) as \(claimed)")
            }
        }
    }

    @Test(arguments: KeyOfKind.all)
    func `a signature of another length or with one bit changed does not verify`(kind: KeyOfKind) throws {
        let (signer, key) = (try kind.signer.get(), try kind.key())
        for algorithm in kind.algorithms {
            let good = try signer.signature(over: Self.message, as: algorithm.rawValue)
            func verifies(_ signature: [UInt8], over message: [UInt8] = Self.message) -> Bool {
                key.verify(signature: signature, signingInput: message, as: algorithm)
            }
            #expect(verifies(good))
            #expect(!verifies(good, over: Self.message + [0]))
            #expect(!verifies(good, over: []))
            let zeros = [UInt8](repeating: 0, count: good.count)
            let half = Array(good.prefix(good.count / 2))
            let ones = [UInt8](repeating: 0xFF, count: good.count)
            let bads: [[UInt8]] = [
                [], zeros, ones, half, good + half, good + [0], [0] + good, Array(good.dropLast()),
                Array(good.dropFirst()), good + good, half + zeros.prefix(half.count),
            ]
            for bad in bads {
                #expect(!verifies(bad), "\(algorithm) \(bad.count)")
            }
            for index in stride(from: 0, to: good.count, by: 5) {
                var changed = good
                changed[index] ^= 0x04
                #expect(!verifies(changed), "\(algorithm) byte \(index)")
            }
        }
    }

    static let lengths: [(SignatureAlgorithm, Int32)] = [(.ps256, 32), (.ps384, 48), (.ps512, 64)]

    @Test(arguments: lengths)
    func `PSS has a salt as long as the hash and one hash`(algorithm: SignatureAlgorithm, length: Int32) throws {
        let (signer, key) = (try KeyOfKind.all[0].signer.get(), try KeyOfKind.all[0].key())
        let longest = 256 - length - 2
        for salt in [0, 1, 20, 32, 48, 64, length - 1, length, length + 1, longest] {
            let signature = try signer.signature(over: Self.message, as: algorithm.rawValue, saltLength: salt)
            #expect(
                key.verify(signature: signature, signingInput: Self.message, as: algorithm) == (salt == length),
                "salt of \(salt)")
        }
        for hash in ["SHA1", "SHA256", "SHA384", "SHA512"] {
            let signature = try signer.signature(over: Self.message, as: algorithm.rawValue, mgfHash: hash)
            #expect(
                key.verify(signature: signature, signingInput: Self.message, as: algorithm)
                    == (hash.dropFirst(3) == algorithm.rawValue.dropFirst(2)),
                "MGF1 with \(hash)")
        }
    }

    @Test(arguments: KeyOfKind.all[1...3])
    func `a curve has one hash and one form of signature`(kind: KeyOfKind) throws {
        let (signer, key) = (try kind.signer.get(), try kind.key())
        let own = kind.algorithms[0]
        for name in ["ES256", "ES384", "ES512"] {
            let signature = try signer.signature(over: Self.message, as: name)
            #expect(
                key.verify(signature: signature, signingInput: Self.message, as: own) == (name == own.rawValue),
                "\(name) with \(kind.testDescription)")
        }
        let good = try signer.signature(over: Self.message, as: own.rawValue)
        let (r, s) = (good[..<(good.count / 2)], good[(good.count / 2)...])
        func integer(_ value: ArraySlice<UInt8>) -> [UInt8] {
            let digits = Array(value.drop { $0 == 0 })
            let positive = (digits.first ?? 0) >= 0x80 ? [0] + digits : digits
            return [0x02, UInt8(positive.count)] + positive
        }
        let body = integer(r) + integer(s)
        for der in [[0x30, UInt8(truncatingIfNeeded: body.count)] + body, [0x30, 0x81, UInt8(body.count)] + body] {
            #expect(!key.verify(signature: der, signingInput: Self.message, as: own))
            let padded = der + [UInt8](repeating: 0, count: max(0, good.count - der.count))
            #expect(!key.verify(signature: Array(padded.prefix(good.count)), signingInput: Self.message, as: own))
        }
    }

    @Test(arguments: KeyOfKind.all)
    func `a key serves those of the allowed algorithms that are its own`(kind: KeyOfKind) throws {
        for algorithm in SignatureAlgorithm.allCases {
            if kind.algorithms.contains(algorithm) {
                #expect(try kind.key(allowing: [algorithm]).algorithms == [algorithm])
            } else {
                #expect(throws: CryptoError.self) { try kind.key(allowing: [algorithm]) }
            }
        }
        #expect(throws: CryptoError.self) { try kind.key(allowing: []) }
        #expect(try kind.key(allowing: [.hs256, kind.algorithms[0]]).algorithms == [kind.algorithms[0]])
        let plain = try VerificationKey(id: #require(KeyID("key")), parts: kind.parts)
        #expect(plain.algorithms == [kind.algorithms[0]])
    }

    @Test func `a key of several algorithms verifies nothing unless the algorithm is named`() throws {
        let (signer, kind) = (try KeyOfKind.all[0].signer.get(), KeyOfKind.all[0])
        let signature = try signer.signature(over: Self.message)
        let (one, two) = (try kind.key(allowing: [.rs256]), try kind.key(allowing: [.rs256, .ps256]))
        #expect(two.algorithms == [.rs256, .ps256])
        #expect(one.verify(signature: signature, signingInput: Self.message))
        #expect(!two.verify(signature: signature, signingInput: Self.message))
        #expect(two.verify(signature: signature, signingInput: Self.message, as: .rs256))
    }

    @Test func `a key of P-384 is not one for ES256`() throws {
        let kind = KeyOfKind.all[2]
        let signature = try kind.signer.get().signature(over: Self.message, as: "ES256")
        #expect(try !kind.key().verify(signature: signature, signingInput: Self.message, as: .es256))
        #expect(throws: CryptoError.self) { try PublicKey(kind.parts, for: .edDSA) }
        #expect(throws: CryptoError.self) { try PublicKey(kind.parts, for: .rsaPSS(.sha384)) }
        #expect(throws: CryptoError.self) { try PublicKey(KeyOfKind.all[4].parts, for: .ecdsa) }
        #expect(throws: CryptoError.self) { try PublicKey(KeyOfKind.all[0].parts, for: .ecdsa) }
        #expect(throws: CryptoError.self) { try PublicKey(KeyOfKind.all[0].parts).bound(to: .edDSA) }
    }

    @Test func `the two curves of EdDSA are not exchanged`() throws {
        let (small, large) = (KeyOfKind.all[4], KeyOfKind.all[5])
        for (signer, verifier) in [(small, large), (large, small)] {
            let signature = try signer.signer.get().signature(over: Self.message)
            let length = signer.testDescription == "Ed25519" ? 114 : 64
            let fitted = (signature + [UInt8](repeating: 0, count: 114)).prefix(length)
            for bad in [signature, Array(fitted)] {
                #expect(try !verifier.key().verify(signature: bad, signingInput: Self.message, as: .edDSA))
            }
        }
    }
}
