import MartletCore
import MartletCrypto
import Testing

@Suite struct HKDFSHA256Tests {
    // RFC 5869 A.1 to A.3
    @Test(arguments: [
        (
            String(repeating: "0b", count: 22), "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
        ),
        (
            run(0x00...0x4F), run(0x60...0xAF), run(0xB0...0xFF),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
                + "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
        ),
        (
            String(repeating: "0b", count: 22), "", "",
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
        ),
    ])
    func `derives the keys of RFC 5869`(secret: String, salt: String, purpose: String, expected: String) {
        for length in [expected.utf8.count / 2, 32, 20, 0] {
            let key = HKDFSHA256.derive(
                from: Secret(Hexadecimal.bytes(secret)), salt: Hexadecimal.bytes(salt),
                purpose: Hexadecimal.bytes(purpose), length: length)
            #expect(key.withBytes { $0 } == Array(Hexadecimal.bytes(expected).prefix(length)))
        }
    }

    @Test func `does not wipe the caller's salt`() {
        let salt = Hexadecimal.bytes("0102030405060708")
        let keys = (0..<2).map { _ in
            HKDFSHA256.derive(from: Secret([1]), salt: salt, purpose: [2], length: 32).withBytes { $0.map { $0 } }
        }
        #expect(keys[0] == keys[1] && salt == Hexadecimal.bytes("0102030405060708"))
    }

    @Test func `clamps the length to what HKDF allows`() {
        let key = HKDFSHA256.derive(from: Secret([1]), salt: [], purpose: [], length: 10_000)
        #expect(key.count == 8160)
    }

    private static func run(_ range: ClosedRange<UInt8>) -> String {
        range.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}
