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

    @Test func `is the same for keys with the same tag`() {
        #expect(HashSlot(of: Array("martlet:{0a1b}:s:1".utf8)) == HashSlot(of: Array("x{0a1b}y".utf8)))
        #expect(HashSlot(of: Array("{".utf8)) != HashSlot(of: Array("{}".utf8)))
    }
}
