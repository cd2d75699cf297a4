import MartletCore
import Testing

@testable import MartletCrypto

@Suite struct AES256SIVTests {
    /// OpenSSL's own vector for AES-256, made from the first one of RFC 5297.
    @Test func `seals and opens what others have sealed`() throws {
        let key = Secret(
            Hexadecimal.bytes(
                "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
                    + "f0f1f2f3f4f5f6f7f8f9fafbfcfdfefffffefdfcfbfaf9f8f7f6f5f4f3f2f1f0"))
        let context = Hexadecimal.bytes("101112131415161718191a1b1c1d1e1f2021222324252627")
        let text = Hexadecimal.bytes("112233445566778899aabbccddee")
        let sealed = Hexadecimal.bytes("724dfb2eaf94dbb19b0ba3a299a0801e" + "f3b05a55498ec2552690b89810e4")
        #expect(try AES256SIV.seal(text, with: key, context: context) == sealed)
        #expect(AES256SIV.open(sealed, with: key, context: context)?.withBytes { $0 } == text)
    }

    @Test func `does not open what was changed in any bit, truncated, or sealed in another context`() throws {
        let key = Secret([UInt8](0..<64))
        let sealed = try AES256SIV.seal(Array("a record".utf8), with: key, context: [1, 2])
        for bit in 0..<(sealed.count * 8) {
            var changed = sealed
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(AES256SIV.open(changed, with: key, context: [1, 2]) == nil)
        }
        for length in 0..<sealed.count {
            #expect(AES256SIV.open(Array(sealed[..<length]), with: key, context: [1, 2]) == nil)
        }
        for context in [[], [1], [2, 1], [1, 2, 0]] as [[UInt8]] {
            #expect(AES256SIV.open(sealed, with: key, context: context) == nil)
        }
        for other in [[UInt8](0..<32), [UInt8](1..<65), []] {
            #expect(AES256SIV.open(sealed, with: Secret(other), context: [1, 2]) == nil)
        }
        #expect(AES256SIV.open(sealed, with: key, context: [1, 2])?.withBytes { $0 } == Array("a record".utf8))
    }

    @Test func `seals nothing without text, context or a whole key`() {
        let key = Secret([UInt8](0..<64))
        #expect(throws: CryptoError.self) { try AES256SIV.seal([], with: key, context: [1]) }
        #expect(throws: CryptoError.self) { try AES256SIV.seal([1], with: key, context: []) }
        #expect(throws: CryptoError.self) { try AES256SIV.seal([1], with: Secret([UInt8](0..<32)), context: [1]) }
    }
}
