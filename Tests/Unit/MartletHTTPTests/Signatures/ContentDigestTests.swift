import MartletCore
import Testing

@testable import MartletHTTP

@Suite struct ContentDigestTests {
    /// RFC 9530 §B.1: of `{"hello": "world"}` and a line feed.
    private static let sha256 = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
    private static let sha512 =
        "sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:"

    @Test func `has the digests of known algorithms`() throws {
        let both = try ContentDigest(Array("\(Self.sha512), \(Self.sha256);x=1, md5=:AAAA:".utf8))
        #expect(both.sha256?.count == 32 && both.sha512?.count == 64)
        #expect(both.sha256?.prefix(3) == [0x44, 0xAF, 0xF4])
        #expect(try ContentDigest(Array(Self.sha256.utf8)) == ContentDigest(Array("\(Self.sha256),x=:AA==:".utf8)))
        #expect(try ContentDigest(Array(Self.sha512.utf8)).sha256 == nil)
    }

    @Test(arguments: [
        ("", ErrorCode.digestUnknownAlgorithm), ("md5=:AAAA:", .digestUnknownAlgorithm),
        ("sha=:AAAA:, unixsum=:AAAA:", .digestUnknownAlgorithm), ("sha-256", .digestMalformed),
        ("sha-256=:AAAA:", .digestMalformed),
        ("sha-512=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:", .digestMalformed),
        ("sha-256=\"AAAA\"", .digestMalformed), ("sha-256=(:AAAA:)", .digestMalformed), ("md5=1", .digestMalformed),
        ("\(sha256), \(sha256)", .digestMalformed), ("\(sha256), md5=x", .digestMalformed),
        ("SHA-256=::", .digestMalformed),
        ("\(sha256),", .digestMalformed), ("sha-256=RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=", .digestMalformed),
    ])
    func `is rejected`(value: String, code: ErrorCode) {
        #expect { try ContentDigest(Array(value.utf8)) } throws: { ($0 as? ContentDigestError)?.code == code }
    }
}
