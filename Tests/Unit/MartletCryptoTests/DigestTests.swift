import MartletCore
import MartletCrypto
import Testing

@Suite struct DigestTests {
    static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("gateway-nonce-0001", "c507eefc808c1c16f4dabf38769aa1f4d1251150722a8cab9ccc5d6dc25ddc6a"),
    ])
    func `computes SHA-256 digests`(text: String, expected: String) {
        #expect(Self.hexadecimal(SHA256.digest(Array(text.utf8))) == expected)
    }

    // RFC 3174 §7.3
    @Test(arguments: [
        ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        ),
    ])
    func `computes SHA-1 digests`(text: String, expected: String) {
        #expect(Self.hexadecimal(SHA1.digest(Array(text.utf8))) == expected)
    }

    // RFC 4231 §4.2, §4.3, §4.7
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0B, count: 20), "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xAA, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `computes HMAC-SHA-256 codes`(key: [UInt8], text: String, expected: String) {
        #expect(Self.hexadecimal(HMACSHA256.authenticate(Array(text.utf8), key: Secret(key))) == expected)
    }

    // FIPS 180-4 examples, and RFC 4231 §4.3.
    static let longer: [(HashFunction, String, String)] = [
        (
            .sha384,
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649"
        ),
        (
            .sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd"
                + "454d4423643ce80e2a9ac94fa54ca49f",
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fd"
                + "caeab1a34d4a6b4b636e070a38bce737"
        ),
    ]

    @Test(arguments: longer)
    func `computes longer digests and their HMACs`(hash: HashFunction, digest: String, code: String) {
        #expect(Self.hexadecimal(hash.digest(Array("abc".utf8))) == digest)
        let message = Array("what do ya want for nothing?".utf8)
        #expect(Self.hexadecimal(hash.authenticationCode(of: message, key: Secret("Jefe"))) == code)
        #expect(hash.digest([]).count == hash.length)
    }

    @Test func `SHA-256 and its HMAC are the same by either name`() {
        let text = Array("abc".utf8)
        #expect(HashFunction.sha256.digest(text) == SHA256.digest(text))
        #expect(
            HashFunction.sha256.authenticationCode(of: text, key: Secret("k"))
                == HMACSHA256.authenticate(text, key: Secret("k")))
    }

    @Test func `does not return the same random bytes twice`() throws {
        let samples = try (0..<100).map { _ in try RandomBytes.make(32) }
        #expect(Set(samples).count == 100)
        #expect(samples.allSatisfy { $0.count == 32 })
        #expect(try RandomBytes.make(0).isEmpty)
    }

    @Test func `compares by content and length`() {
        #expect(ConstantTime.areEqual([1, 2, 3], [1, 2, 3]))
        #expect(ConstantTime.areEqual([], []))
        #expect(!ConstantTime.areEqual([1, 2, 3], [1, 2, 4]))
        #expect(!ConstantTime.areEqual([1, 2, 3], [1, 2]))
    }
}

@Suite struct PreparedHMACTests {
    /// Keys and messages of all lengths around those of a block.
    @Test func `a prepared key makes the same codes`() {
        for length in 0...130 {
            let secret = Secret((0..<length).map { UInt8(truncatingIfNeeded: 7 &* $0 &+ length) })
            let key = HMACSHA256.Key(secret)
            for count in [0, 1, 55, 56, 63, 64, 65, length, 1000] {
                let message = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
                #expect(key.authenticate(message) == HMACSHA256.authenticate(message, key: secret))
            }
        }
    }
}
