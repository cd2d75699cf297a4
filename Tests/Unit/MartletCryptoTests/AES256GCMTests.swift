import MartletCore
import Testing

@testable import MartletCrypto

@Suite struct AES256GCMTests {
    /// One of test cases 13 to 16 of the GCM specification.
    struct Vector: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let key: String
        let nonce: String
        var text = ""
        var context = ""
        let sealed: String
        let tag: String
    }

    static let feffe = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"
    static let longText =
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255"
    static let longSealed =
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"
    static let vectors = [
        Vector(
            testDescription: "13: nothing", key: String(repeating: "00", count: 32),
            nonce: String(repeating: "00", count: 12), sealed: "", tag: "530f8afbc74536b9a963b4f1c4cb738b"),
        Vector(
            testDescription: "14: one block", key: String(repeating: "00", count: 32),
            nonce: String(repeating: "00", count: 12), text: String(repeating: "00", count: 16),
            sealed: "cea7403d4d606b6e074ec5d3baf39d18", tag: "d0d1c8a799996bf0265b98b5d48ab919"),
        Vector(
            testDescription: "15: four blocks", key: feffe, nonce: "cafebabefacedbaddecaf888", text: longText,
            sealed: longSealed, tag: "b094dac5d93471bdec1a502270e3cc6c"),
        Vector(
            testDescription: "16: not whole blocks, and a context", key: feffe, nonce: "cafebabefacedbaddecaf888",
            text: String(longText.dropLast(8)), context: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            sealed: String(longSealed.dropLast(8)), tag: "76fc6ece0f4e1768cddf8853bb2d551b"),
    ]

    @Test(arguments: vectors)
    func `seals and opens NIST's vectors`(vector: Vector) throws {
        let key = Secret(bytes(vector.key))
        let expected = bytes(vector.nonce + vector.sealed + vector.tag)
        let sealed = try AES256GCM.seal(
            bytes(vector.text), with: key, context: bytes(vector.context), nonce: bytes(vector.nonce))
        #expect(sealed == expected)
        let opened = AES256GCM.open(expected, with: key, context: bytes(vector.context))
        #expect(opened?.withBytes { $0 } == bytes(vector.text))
    }

    @Test func `does not open what was changed in any bit, truncated, or sealed in another context`() throws {
        let key = Secret(try RandomBytes.make(32))
        let sealed = try AES256GCM.seal(Array("a record".utf8), with: key, context: [1, 2])
        for bit in 0..<(sealed.count * 8) {
            var changed = sealed
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(AES256GCM.open(changed, with: key, context: [1, 2]) == nil)
        }
        for length in 0..<sealed.count {
            #expect(AES256GCM.open(Array(sealed[..<length]), with: key, context: [1, 2]) == nil)
        }
        for context: [UInt8] in [[], [1], [1, 2, 3], [2, 1]] {
            #expect(AES256GCM.open(sealed, with: key, context: context) == nil)
        }
        #expect(AES256GCM.open(sealed, with: Secret(try RandomBytes.make(32)), context: [1, 2]) == nil)
        #expect(AES256GCM.open(sealed, with: key, context: [1, 2])?.count == 8)
    }

    @Test func `uses every nonce once`() throws {
        let key = Secret(try RandomBytes.make(32))
        let sealed = try (0..<100).map { _ in try AES256GCM.seal([1], with: key, context: []) }
        #expect(Set(sealed.map { $0.prefix(12) }).count == 100)
    }

    @Test(arguments: [0, 16, 31, 33])
    func `rejects a key of another length`(length: Int) {
        let key = Secret([UInt8](repeating: 1, count: length))
        let error = #expect(throws: CryptoError.self) { try AES256GCM.seal([1], with: key, context: []) }
        #expect(error?.code == .cryptoFailure)
        #expect(AES256GCM.open([UInt8](repeating: 0, count: 40), with: key, context: []) == nil)
    }

    private func bytes(_ hexadecimal: String) -> [UInt8] { Hexadecimal.bytes(hexadecimal) }
}

enum Hexadecimal {
    static func bytes(_ text: String) -> [UInt8] {
        let digits = text.utf8.map { $0 < 58 ? $0 - 48 : $0 - 87 }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
