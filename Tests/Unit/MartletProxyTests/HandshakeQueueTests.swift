import MartletProvider
import Testing

@testable import MartletProxy

@Suite struct HandshakeQueueTests {
    private static let near = network(127, 0, 0, 1)
    private static let far = network(198, 51, 100, 7)

    @Test func `a turn does no more than its share, and the rest waits for the next`() {
        var queue = HandshakeQueue()
        for index in 0..<Int32(100) { queue.append(.events, of: connection(index), from: Self.near) }
        #expect(turn(&queue) == Array(0..<Int32(HandshakeQueue.batch)))
        #expect(turn(&queue).first == Int32(HandshakeQueue.batch))
        let isEmpty = queue.isEmpty
        #expect(!isEmpty)
    }

    @Test func `a network waits for one connection of each other, not for all of them`() {
        var queue = HandshakeQueue()
        for index in 0..<Int32(100) { queue.append(.events, of: connection(index), from: Self.near) }
        queue.append(.events, of: connection(1000), from: Self.far)
        #expect(turn(&queue).prefix(3).contains(1000))
    }

    @Test func `clients without a known network share one turn`() {
        var queue = HandshakeQueue()
        queue.append(.events, of: connection(1), from: nil)
        queue.append(.events, of: connection(2), from: nil)
        #expect(turn(&queue) == [1, 2])
        let isEmpty = queue.isEmpty
        #expect(isEmpty)
    }

    /// The network of an IPv4 address.
    private static func network(_ bytes: UInt8...) -> ClientNetwork? {
        ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + bytes)
    }

    private func connection(_ index: Int32) -> Handle<DownstreamConnection> { Handle(index: index, generation: 1) }

    private func turn(_ queue: inout HandshakeQueue) -> [Int32] {
        var served: [Int32] = []
        while let (connection, _) = queue.next(after: served.count) { served.append(connection.index) }
        return served
    }
}
