import MartletCore
import MartletCrypto
import Testing

@Suite struct `AES-128 in CBC mode` {
    private static func bytes(_ hexadecimal: String) -> [UInt8] {
        let digits = Array(hexadecimal)
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) }
    }

    private static let key = Secret(bytes("2b7e151628aed2a6abf7158809cf4f3c"))
    private static let iv = bytes("000102030405060708090a0b0c0d0e0f")

    @Test func `encrypts as NIST SP 800-38A F.2.1 does`() throws {
        let plain = Self.bytes("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
        let expected = Self.bytes("7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2")
        let sealed = try #require(AES128CBC.encrypt(plain, key: Self.key, iv: Self.iv))
        #expect(Array(sealed.prefix(32)) == expected)
        #expect(sealed.count == 48)
    }

    @Test(arguments: 0...49)
    func `decrypts what it encrypted`(length: Int) throws {
        let plain = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37) }
        let sealed = try #require(AES128CBC.encrypt(plain, key: Self.key, iv: Self.iv))
        let opened = try #require(AES128CBC.decrypt(sealed, key: Self.key, iv: Self.iv))
        #expect(opened.bytes == plain)
        #expect(opened.isPaddingValid)
    }

    /// The last block for each padding length, correct and with one byte wrong.
    @Test(arguments: 1...16)
    func `padding is valid when all its bytes are its length`(length: Int) throws {
        func opened(_ block: [UInt8]) throws -> AES128CBC.Opened {
            let sealed = try #require(AES128CBC.encrypt(block, key: Self.key, iv: Self.iv))
            return try #require(AES128CBC.decrypt(Array(sealed.prefix(16)), key: Self.key, iv: Self.iv))
        }
        let good = [UInt8](repeating: 0xAA, count: 16 - length) + [UInt8](repeating: UInt8(length), count: length)
        #expect(try opened(good).isPaddingValid)
        #expect(try opened(good).bytes.count == 16 - length)
        for index in (16 - length)..<16 {
            var bad = good
            bad[index] ^= 0x40
            #expect(try !opened(bad).isPaddingValid, "byte \(index)")
            #expect(try opened(bad).bytes == bad)
        }
    }

    @Test(arguments: [0, 17, 32, 128, 255])
    func `padding of another length is invalid`(last: UInt8) throws {
        let block = [UInt8](repeating: last, count: 16)
        let sealed = try #require(AES128CBC.encrypt(block, key: Self.key, iv: Self.iv))
        let opened = try #require(AES128CBC.decrypt(Array(sealed.prefix(16)), key: Self.key, iv: Self.iv))
        #expect(!opened.isPaddingValid)
        #expect(opened.bytes == block)
    }

    @Test func `rejects invalid lengths`() {
        let block = [UInt8](repeating: 0, count: 16)
        #expect(AES128CBC.decrypt([], key: Self.key, iv: Self.iv) == nil)
        #expect(AES128CBC.decrypt(block + [1], key: Self.key, iv: Self.iv) == nil)
        #expect(AES128CBC.decrypt(block, key: Secret([UInt8](repeating: 0, count: 32)), iv: Self.iv) == nil)
        #expect(AES128CBC.decrypt(block, key: Self.key, iv: block.dropLast()) == nil)
        #expect(AES128CBC.encrypt(block, key: Secret([]), iv: Self.iv) == nil)
        #expect(AES128CBC.encrypt(block, key: Self.key, iv: []) == nil)
    }
}
