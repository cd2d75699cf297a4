import Testing

@testable import MartletRedis

@Suite struct ReplicatedWritesTests {
    @Test func `sends one group at a time, and what came meanwhile together`() throws {
        var writes = ReplicatedWrites<Int>(limit: 3)
        #expect(try writes.add(1) == [1])
        #expect(try writes.add(2) == nil)
        #expect(try writes.add(3) == nil)
        #expect(writes.finished() == [2, 3])
        #expect(writes.finished() == nil)
        #expect(try writes.add(4) == [4])
    }

    @Test func `is bounded`() throws {
        var writes = ReplicatedWrites<Int>(limit: 2)
        for number in 0..<3 { _ = try writes.add(number) }
        #expect(throws: (any Error).self) { try writes.add(3) }
        #expect(writes.finished() == [1, 2])
    }
}
