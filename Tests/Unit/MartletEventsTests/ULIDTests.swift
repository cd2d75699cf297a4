import Testing

@testable import MartletEvents

@Suite struct ULIDTests {
    @Test(
        arguments: [
            (0, 0, "00000000000000000000000000"),
            (0xFFFF_FFFF_FFFF, 0xFF, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"),
            (1_469_918_176_385, 0, "01ARYZ6S410000000000000000"),
        ] as [(Int64, UInt8, String)])
    func `has 48 bits of time and 80 random ones`(time: Int64, random: UInt8, text: String) {
        #expect(ULID(at: time, random: [UInt8](repeating: random, count: 10)).description == text)
    }

    @Test func `clamps times that do not fit`() {
        #expect(ULID(at: -1, random: []).description == ULID(at: 0, random: []).description)
        #expect(ULID(at: .max, random: []).description == ULID(at: 0xFFFF_FFFF_FFFF, random: []).description)
    }

    @Test func `sorts by time and never repeats`() throws {
        let ids = try (0..<1000).map { try ULID(at: 1_700_000_000_000 + Int64($0 / 10)).description }
        #expect(Set(ids).count == ids.count)
        #expect(zip(ids, ids.dropFirst(10)).allSatisfy { $0 < $1 })
        #expect(ids.allSatisfy { ULID($0)?.description == $0 })
    }

    @Test func `parses small letters`() {
        #expect(ULID("01aryz6s410000000000000000")?.description == "01ARYZ6S410000000000000000")
    }

    @Test(arguments: [
        "", "01ARYZ6S41000000000000000", "01ARYZ6S4100000000000000000", "81ARYZ6S410000000000000000",
        "01ARYZ6S41000000000000000I", "01ARYZ6S41000000000000000L", "01ARYZ6S41000000000000000O",
        "01ARYZ6S41000000000000000U", "01ARYZ6S41000000000000000-", "01ARYZ6S4100000000000000é",
    ])
    func `rejects what is no identifier`(text: String) {
        #expect(ULID(text) == nil)
    }
}
