import MartletCore
import Testing

@testable import MartletRedis

@Suite struct RedisCommandTests {
    private func keys(_ count: Int) -> [[UInt8]] { (0..<count).map { Array("{a}\($0)".utf8) } }

    @Test func `a script has many keys if it is given several, or composes the names of others`() {
        let plain = RedisScript("return 1", traits: .isRepeatable)
        #expect(plain.command("EVALSHA", keys(1), [], expecting: .anything).traits == .isRepeatable)
        let both: RedisCommandTraits = [.isRepeatable, .hasManyKeys]
        #expect(plain.command("EVALSHA", keys(2), [], expecting: .anything).traits == both)
        #expect(plain.command("EVAL", keys(3), [], expecting: .anything).traits == both)
        let composing = RedisScript("return 1", traits: .hasManyKeys)
        #expect(composing.command("EVALSHA", keys(1), [], expecting: .anything).traits == .hasManyKeys)
    }

    @Test func `a rejection of one command is a failure, a script that is not cached is none`() {
        let script = RedisScript("return 1")
        let byDigest = script.command("EVALSHA", keys(1), [], expecting: .anything)
        let byText = script.command("EVAL", keys(1), [], expecting: .anything)
        #expect(byDigest.rejection(in: .integer(1)) == nil && byDigest.rejection(in: .nothing) == nil)
        #expect(byDigest.rejection(in: .error(kind: "NOSCRIPT")) == nil)
        #expect(byText.rejection(in: .error(kind: "NOSCRIPT"))?.code == .redisRefused)
        #expect(byDigest.rejection(in: .error(kind: "WRONGTYPE"))?.code == .redisRefused)
    }
}
