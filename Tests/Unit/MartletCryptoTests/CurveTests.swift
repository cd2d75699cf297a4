import MartletCore
import MartletCrypto
import MartletTesting
import Testing

/// The bounds of the curves beyond P-256, and of the points of EdDSA.
@Suite struct CurveTests {
    struct Curve: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let kind: SigningKey.Kind
        let algorithm: String
        /// The order of the group (FIPS 186-4 D.1.2).
        let order: [UInt8]

        func key(_ signer: SigningKey) throws -> PublicKey {
            let jwk = try signer.jwk()
            let x = try #require(jwk["x"].flatMap { Base64URL.decode($0) })
            let y = try #require(jwk["y"].flatMap { Base64URL.decode($0) })
            return try PublicKey(testDescription == "P-384" ? .p384(x: x, y: y) : .p521(x: x, y: y))
        }
    }

    static let message = Array("the hall is dry".utf8)

    static let curves = [
        Curve(
            testDescription: "P-384", kind: .p384, algorithm: "ES384",
            order: hex(
                "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973")),
        Curve(
            testDescription: "P-521", kind: .p521, algorithm: "ES512",
            order: hex(
                "01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa"
                    + "51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409")),
    ]

    static func hex(_ text: String) -> [UInt8] {
        stride(from: 0, to: text.utf8.count, by: 2).map { offset in
            UInt8(text.dropFirst(offset).prefix(2), radix: 16) ?? 0
        }
    }

    @Test(arguments: curves)
    func `reject r or s outside the group`(curve: Curve) throws {
        let signer = try SigningKey("k", curve.kind)
        let key = try curve.key(signer)
        let length = curve.order.count
        // Many, so that short r and s occur, whose DER has another length.
        for _ in 0..<60 {
            let signature = try signer.signature(over: Self.message, as: curve.algorithm)
            #expect(signature.count == 2 * length && key.verify(signature, over: Self.message))
        }
        let good = try signer.signature(over: Self.message, as: curve.algorithm)
        let (r, s) = (Array(good[..<length]), Array(good[length...]))
        let (zero, top) = ([UInt8](repeating: 0, count: length), [UInt8](repeating: 0xFF, count: length))
        let n = curve.order
        for bad in [zero + zero, zero + s, r + zero, n + s, r + n, n + n, top + s, r + top, top + top, s + r] {
            #expect(!key.verify(bad, over: Self.message))
        }
        // One below the order is in range, and simply no signature.
        let last = Array(n.dropLast()) + [(n.last ?? 0) - 1]
        #expect(!key.verify(last + last, over: Self.message))
    }

    /// The eight points of small order of Ed25519, and encodings of them that are not reduced.
    static let small25519 = [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    ]
    static let unreduced25519 = [
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ]
    static let small448 = [
        "01" + zeros + "00", "01" + zeros + "80", "00" + zeros + "00", "00" + zeros + "80",
        "fe" + String(repeating: "f", count: 54) + "fe" + String(repeating: "f", count: 54) + "00",
    ]
    private static let zeros = String(repeating: "0", count: 110)

    static func code(_ parts: PublicKeyParts) -> ErrorCode? {
        do { _ = try PublicKey(parts) } catch { return error.code }
        return nil
    }

    @Test func `a point of small order, for which any client could sign, is no key`() {
        for text in Self.small25519 { #expect(Self.code(.ed25519(x: Self.hex(text))) == .cryptoWeakKey, "\(text)") }
        for text in Self.small448 { #expect(Self.code(.ed448(x: Self.hex(text))) == .cryptoWeakKey, "\(text)") }
    }

    @Test func `half of all y have no point`() throws {
        for text in Self.unreduced25519 { #expect(Self.code(.ed25519(x: Self.hex(text))) == .cryptoBadKey, "\(text)") }
        var used = 0
        for first in UInt8(2)...201 {
            let bytes = [first] + [UInt8](repeating: 0, count: 31)
            guard let code = Self.code(.ed25519(x: bytes)) else {
                used += 1
                continue
            }
            #expect(code == .cryptoBadKey)
        }
        #expect((60...140).contains(used))
        for count in [0, 31, 33, 57] {
            #expect(Self.code(.ed25519(x: [UInt8](repeating: 5, count: count))) == .cryptoBadKey)
        }
        for count in [0, 32, 56, 58] {
            #expect(Self.code(.ed448(x: [UInt8](repeating: 5, count: count))) == .cryptoBadKey)
        }
    }

    @Test(arguments: [SigningKey.Kind.ed25519, .ed448])
    func `every generated key is a key and verifies its signatures`(kind: SigningKey.Kind) throws {
        for _ in 0..<40 {
            let signer = try SigningKey("k", kind)
            let x = try #require(try signer.jwk()["x"].flatMap { Base64URL.decode($0) })
            let key = try PublicKey(x.count == 32 ? .ed25519(x: x) : .ed448(x: x))
            let signature = try signer.signature(over: Self.message, as: "EdDSA")
            #expect(signature.count == 2 * x.count)
            #expect(key.verify(signature, over: Self.message))
            #expect(!key.verify(signature, over: Self.message + [0]))
            let zeros = [UInt8](repeating: 0, count: signature.count)
            for bad in [zeros, [1] + zeros.dropFirst(), signature + [0], Array(signature.dropLast()), []] {
                #expect(!key.verify(bad, over: Self.message))
            }
        }
    }

    @Test func `one key of EdDSA or PSS can be used by many threads concurrently`() async throws {
        let signer = try SigningKey("k", .ed25519)
        let x = try #require(try signer.jwk()["x"].flatMap { Base64URL.decode($0) })
        let rsa = try SigningKey.shared()
        let jwk = try rsa.jwk()
        let modulus = try #require(jwk["n"].flatMap { Base64URL.decode($0) })
        let pss = try PublicKey(.rsa(modulus: modulus, exponent: [1, 0, 1]), for: .rsaPSS(.sha512))
        let keys = [
            (try PublicKey(.ed25519(x: x)), try signer.signature(over: Self.message, as: "EdDSA")),
            (pss, try rsa.signature(over: Self.message, as: "PS512")),
        ]
        for (key, signature) in keys {
            let verified = await withTaskGroup(of: Int.self) { group in
                for task in 0..<8 {
                    group.addTask { @concurrent in
                        (0..<100).count { round in
                            let expected = (task + round) % 3 != 0
                            return key.verify(signature, over: expected ? Self.message : []) == expected
                        }
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(verified == 800)
        }
    }
}
