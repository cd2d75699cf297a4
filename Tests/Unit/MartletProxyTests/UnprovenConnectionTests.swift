import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct UnprovenConnectionTests {
    private static let second: Int64 = 1_000_000_000

    @Test func `a silent connection is evictable after a quarter of a second`() {
        let connection = UnprovenConnection.silent(since: 7)
        #expect(!connection.isEvictable(at: 7))
        #expect(!connection.isEvictable(at: 6 + Self.second / 4))
        #expect(connection.isEvictable(at: 7 + Self.second / 4))
    }

    @Test func `a slow upload is evictable after a quarter of a second`() {
        #expect(!UnprovenConnection.uploading(since: 0, bytes: 0).isEvictable(at: Self.second / 4 - 1))
        #expect(UnprovenConnection.uploading(since: 0, bytes: 0).isEvictable(at: Self.second / 4))
        #expect(UnprovenConnection.uploading(since: 0, bytes: 4 * 1024 - 1).isEvictable(at: Self.second / 4))
        #expect(UnprovenConnection.uploading(since: 0, bytes: 16 * 1024 - 1).isEvictable(at: Self.second))
    }

    @Test func `an upload at a fair rate is not evictable, however long it takes`() {
        for seconds in [Int64(1), 10, 3600] {
            let bytes = Int(seconds) * UnprovenConnection.minimumRate
            #expect(!UnprovenConnection.uploading(since: 0, bytes: bytes).isEvictable(at: seconds * Self.second))
        }
    }
}

@Suite struct ConnectionOrderTests {
    private func connection(_ index: Int32) -> Handle<DownstreamConnection> { Handle(index: index, generation: 0) }

    @Test func `the oldest comes first, and a requeued one comes last`() {
        var order = ConnectionOrder()
        for index in Int32(0)..<3 { order.add(connection(index), alive: 3) { _ in true } }
        #expect(order.popOldest()?.index == 0)
        order.requeue(connection(0))
        #expect((0..<3).compactMap { _ in order.popOldest()?.index } == [1, 2, 0])
        #expect(order.popOldest() == nil)
    }

    @Test func `the number of ended connections in it is bounded`() {
        var order = ConnectionOrder()
        // One long-lived connection in front of many that end immediately.
        for index in Int32(0)..<20_000 {
            order.add(connection(index), alive: 1) { $0.index == 0 }
            #expect(order.count <= 2 + 1024 + 1)
        }
        #expect(order.popOldest()?.index == 0)
    }
}
