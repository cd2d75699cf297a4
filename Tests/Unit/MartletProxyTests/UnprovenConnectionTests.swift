import Testing

@testable import MartletProxy

@Suite struct UnprovenConnectionTests {
    private static let second: Int64 = 1_000_000_000

    @Test func `one that has said nothing gives way after a quarter of a second`() {
        let connection = UnprovenConnection.silent(since: 7)
        #expect(!connection.givesWay(at: 7))
        #expect(!connection.givesWay(at: 6 + Self.second / 4))
        #expect(connection.givesWay(at: 7 + Self.second / 4))
    }

    @Test func `an upload that trickles gives way after a quarter of a second`() {
        #expect(!UnprovenConnection.uploading(since: 0, bytes: 0).givesWay(at: Self.second / 4 - 1))
        #expect(UnprovenConnection.uploading(since: 0, bytes: 0).givesWay(at: Self.second / 4))
        #expect(UnprovenConnection.uploading(since: 0, bytes: 4 * 1024 - 1).givesWay(at: Self.second / 4))
        #expect(UnprovenConnection.uploading(since: 0, bytes: 16 * 1024 - 1).givesWay(at: Self.second))
    }

    @Test func `an upload that goes on at a fair rate is left alone, however long it takes`() {
        for seconds in [Int64(1), 10, 3600] {
            let bytes = Int(seconds) * UnprovenConnection.minimumRate
            #expect(!UnprovenConnection.uploading(since: 0, bytes: bytes).givesWay(at: seconds * Self.second))
        }
    }
}

@Suite struct ConnectionOrderTests {
    private func token(_ index: Int32) -> EventToken { EventToken(.client, index: index) }

    @Test func `the oldest comes first, and one that is put back comes last`() {
        var order = ConnectionOrder()
        for index in Int32(0)..<3 { order.add(token(index), alive: 3) { _ in true } }
        #expect(order.takeOldest()?.index == 0)
        order.putBack(token(0))
        #expect((0..<3).compactMap { _ in order.takeOldest()?.index } == [1, 2, 0])
        #expect(order.takeOldest() == nil)
    }

    @Test func `ended connections never make up more than half of it and a fixed number`() {
        var order = ConnectionOrder()
        // One long-lived connection in front of many that end at once.
        for index in Int32(0)..<20_000 {
            order.add(token(index), alive: 1) { $0.index == 0 }
            #expect(order.count <= 2 + 1024 + 1)
        }
        #expect(order.takeOldest()?.index == 0)
    }
}
