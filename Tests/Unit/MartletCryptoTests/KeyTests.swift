import MartletCore
import MartletCrypto
import Testing

@Suite struct KeyTests {
    static let message = Array("the hall is dry".utf8)
    static let rsa = Result { try PrivateKey(generating: .rsa2048) }
    static let p256 = Result { try PrivateKey(generating: .p256) }

    @Test func `verifies an RSA signature and rejects any variation of it`() throws {
        let key = try Self.rsa.get()
        let signature = try key.sign(Self.message)
        #expect(signature.count == 256)
        try verifiesOnly(signature, by: key)
        #expect(!key.publicKey.verify([0] + signature, over: Self.message))
        #expect(!key.publicKey.verify([UInt8](repeating: 0, count: 256), over: Self.message))
        #expect(!key.publicKey.verify([UInt8](repeating: 0xFF, count: 256), over: Self.message))
    }

    @Test func `verifies a P-256 signature and rejects any variation of it`() throws {
        let key = try Self.p256.get()
        for _ in 0..<50 {
            let signature = try key.sign(Self.message)
            #expect(signature.count == 64)
            #expect(key.publicKey.verify(signature, over: Self.message))
        }
        try verifiesOnly(try key.sign(Self.message), by: key)
    }

    private func verifiesOnly(_ signature: [UInt8], by key: PrivateKey) throws {
        let copy = try PublicKey(key.publicKey.parts)
        #expect(copy.verify(signature, over: Self.message))
        #expect(!copy.verify(signature, over: Self.message + [0]))
        #expect(!copy.verify(signature, over: []))
        #expect(!copy.verify([], over: Self.message))
        #expect(!copy.verify(signature.dropLast(), over: Self.message))
        #expect(!copy.verify(signature + [0], over: Self.message))
        for index in stride(from: 0, to: signature.count, by: 7) {
            var changed = signature
            changed[index] ^= 1
            #expect(!copy.verify(changed, over: Self.message))
        }
    }

    static let order: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
    ]

    @Test func `rejects r or s outside the group`() throws {
        let key = try Self.p256.get()
        let good = try key.sign(Self.message)
        let zero = [UInt8](repeating: 0, count: 32)
        let top = [UInt8](repeating: 0xFF, count: 32)
        let (r, s) = (Array(good[..<32]), Array(good[32...]))
        for bad in [zero + zero, zero + s, r + zero, Self.order + s, r + Self.order, top + s, r + top, top + top] {
            #expect(!key.publicKey.verify(bad, over: Self.message))
        }
    }

    @Test func `rejects the DER form of a signature`() throws {
        let key = try Self.p256.get()
        let good = try key.sign(Self.message)
        let der: [UInt8] = [0x30, 0x44, 0x02, 0x20] + good[..<32] + [0x02, 0x20] + good[32...]
        #expect(!key.publicKey.verify(der, over: Self.message))
    }

    static let modulus = [0x80] + [UInt8](repeating: 0x55, count: 255)

    /// A power of 65537, as moduli of CVE-2017-15361 are modulo small primes: 65537¹²⁸ has 2049 bits.
    static let power: [UInt8] = (0..<128).reduce([1]) { digits, _ in
        // Times 65536, plus once.
        let (high, low) = (digits + [0, 0], [0, 0] + digits)
        var (sum, carry) = ([UInt8](), 0)
        for index in high.indices.reversed() {
            let value = Int(high[index]) + Int(low[index]) + carry
            sum.append(UInt8(value & 0xFF))
            carry = value >> 8
        }
        return (carry == 0 ? [] : [UInt8(carry)]) + sum.reversed()
    }

    static let badKeys: [(String, PublicKeyParts, ErrorCode)] = [
        ("no modulus", .rsa(modulus: [], exponent: [1, 0, 1]), .cryptoBadKey),
        ("2047 bits", .rsa(modulus: [0x7F] + modulus.dropFirst(), exponent: [1, 0, 1]), .cryptoWeakKey),
        ("1024 bits", .rsa(modulus: Array(modulus.prefix(128)), exponent: [1, 0, 1]), .cryptoWeakKey),
        ("8193 bits", .rsa(modulus: [1] + (0..<4).flatMap { _ in modulus }, exponent: [1, 0, 1]), .cryptoWeakKey),
        ("even modulus", .rsa(modulus: modulus.dropLast() + [2], exponent: [1, 0, 1]), .cryptoBadKey),
        ("no exponent", .rsa(modulus: modulus, exponent: []), .cryptoWeakKey),
        ("exponent 1", .rsa(modulus: modulus, exponent: [1]), .cryptoWeakKey),
        ("exponent 3", .rsa(modulus: modulus, exponent: [3]), .cryptoWeakKey),
        ("even exponent", .rsa(modulus: modulus, exponent: [1, 0, 2]), .cryptoWeakKey),
        ("long exponent", .rsa(modulus: modulus, exponent: [1, 0, 0, 0, 0, 0, 0, 0, 1]), .cryptoWeakKey),
        ("faulty generator", .rsa(modulus: power, exponent: [1, 0, 1]), .cryptoWeakKey),
        ("short coordinate", .p256(x: [1], y: [UInt8](repeating: 1, count: 32)), .cryptoBadKey),
        (
            "off the curve", .p256(x: [UInt8](repeating: 1, count: 32), y: [UInt8](repeating: 1, count: 32)),
            .cryptoBadKey
        ),
        ("zero point", .p256(x: [UInt8](repeating: 0, count: 32), y: [UInt8](repeating: 0, count: 32)), .cryptoBadKey),
        (
            "above the field", .p256(x: [UInt8](repeating: 0xFF, count: 32), y: [UInt8](repeating: 1, count: 32)),
            .cryptoBadKey
        ),
    ]

    @Test(arguments: badKeys)
    func `rejects malformed and weak keys`(name: String, parts: PublicKeyParts, code: ErrorCode) {
        #expect(throws: CryptoError.self, "\(name)") { try PublicKey(parts) }
        do { _ = try PublicKey(parts) } catch { #expect(error.code == code, "\(name): \(error)") }
    }

    @Test func `accepts leading zeros of a modulus`() throws {
        let key = try Self.rsa.get()
        guard case .rsa(let modulus, let exponent) = key.publicKey.parts else { return }
        let padded = try PublicKey(.rsa(modulus: [0] + modulus, exponent: [0] + exponent))
        #expect(padded.parts == key.publicKey.parts)
        #expect(padded.verify(try key.sign(Self.message), over: Self.message))
    }

    @Test func `one key can be used by many threads concurrently`() async throws {
        for key in [try Self.rsa.get(), try Self.p256.get()] {
            let signature = try key.sign(Self.message)
            let verified = await withTaskGroup(of: Int.self) { group in
                for task in 0..<8 {
                    group.addTask { @concurrent in
                        (0..<200).count { round in
                            let expected = (task + round) % 3 != 0
                            return key.publicKey.verify(signature, over: expected ? Self.message : []) == expected
                        }
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(verified == 1600)
        }
    }
}
