import MartletCore
import MartletCrypto
import MartletTesting
import Testing

@Suite struct BodyDigestCheckTests {
    private static func matches(_ body: [UInt8], sha256: [UInt8]?, sha512: [UInt8]?, pieces: Int) throws -> Bool {
        var check = try BodyDigestCheck(sha256: sha256, sha512: sha512)
        for start in stride(from: 0, to: body.count, by: pieces) {
            check.update(Array(body[start..<min(start + pieces, body.count)]))
            check.update([])
        }
        return check.matches()
    }

    @Test(arguments: [0, 1, 63, 64, 65, 1000])
    func `matches the body, however it is cut`(length: Int) throws {
        let body = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let (short, long) = (HashFunction.sha256.digest(body), HashFunction.sha512.digest(body))
        for pieces in [1, 7, 64, 2000] {
            #expect(try Self.matches(body, sha256: short, sha512: nil, pieces: pieces))
            #expect(try Self.matches(body, sha256: nil, sha512: long, pieces: pieces))
            #expect(try Self.matches(body, sha256: short, sha512: long, pieces: pieces))
        }
    }

    @Test func `does not match another body, or one of two digests`() throws {
        let body = Array("{\"hello\": \"world\"}\n".utf8)
        let (short, long) = (HashFunction.sha256.digest(body), HashFunction.sha512.digest(body))
        #expect(Base64.encode(short, padding: .required) == "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=")
        for other in [Array(body.dropLast()), body + [0], [], Array(body.reversed())] {
            #expect(try !Self.matches(other, sha256: short, sha512: nil, pieces: 5))
            #expect(try !Self.matches(other, sha256: nil, sha512: long, pieces: 5))
        }
        let (wrongShort, wrongLong) = (HashFunction.sha256.digest([0]), HashFunction.sha512.digest([0]))
        #expect(try !Self.matches(body, sha256: wrongShort, sha512: long, pieces: 5))
        #expect(try !Self.matches(body, sha256: short, sha512: wrongLong, pieces: 5))
        #expect(try !Self.matches(body, sha256: [], sha512: nil, pieces: 5))
    }

    @Test func `needs a digest`() {
        #expect { _ = try BodyDigestCheck(sha256: nil, sha512: nil) } throws: {
            ($0 as? CryptoError)?.code == .cryptoFailure
        }
    }

    @Test func `is the digest of all pieces`() throws {
        for function in HashFunction.allCases {
            var hash = try IncrementalHash(function)
            for piece in ["a", "", "bc"] { hash.update(Array(piece.utf8)) }
            #expect(hash.finish() == function.digest(Array("abc".utf8)))
        }
    }
}
