import Testing

@testable import MartletRedis

@Suite struct HashSlotTests {
    // The first is the test vector of the specification: CRC-16 of "123456789" is 0x31C3.
    @Test(
        arguments: [
            ("123456789", 0x31C3 % 16_384), ("", 0), ("foo", 12_182), ("bar", 5061), ("{user1000}.following", 3443),
            ("{user1000}.followers", 3443), ("foo{}{bar}", 8363), ("foo{{bar}}zap", 4015), ("foo{bar}{zap}", 5061),
        ])
    func `is that of the specification`(key: String, slot: Int) {
        #expect(HashSlot(of: Array(key.utf8)).number == UInt16(slot))
    }

    @Test func `has a key`() {
        let slots: [UInt16] = [0, 1, 5460, 5461, 10_922, 10_923, 16_383]
        #expect(Set(HashSlot.keys(in: slots).map { HashSlot(of: $0).number }) == Set(slots))
        #expect(HashSlot.keys(in: []).isEmpty)
    }

    @Test func `patterns match a text alone`() {
        #expect(RedisClient.pattern(matching: Array("martlet:".utf8)) == Array("martlet:".utf8))
        #expect(
            RedisClient.pattern(matching: Array(#"a*?[b]\^-"#.utf8)) == Array(#"a\*\?\[b\]\\\^\-"#.utf8))
    }

    @Test func `is the same for keys with the same tag`() {
        #expect(HashSlot(of: Array("martlet:{0a1b}:s:1".utf8)) == HashSlot(of: Array("x{0a1b}y".utf8)))
        #expect(HashSlot(of: Array("{".utf8)) != HashSlot(of: Array("{}".utf8)))
    }
}
