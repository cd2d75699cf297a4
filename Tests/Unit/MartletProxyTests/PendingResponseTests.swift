import MartletCore
import Testing

@testable import MartletProxy

@Suite struct PendingResponseTests {
    private static let first = Handle<Exchange>(index: 3, generation: 1)
    /// The same slot, used again.
    private static let next = Handle<Exchange>(index: 3, generation: 2)

    @Test func `bytes of an exchange are collected until they are taken`() {
        var pending = PendingResponse()
        pending[Self.first].append("HTTP/1.1 200 OK\r\n\r\n")
        pending[Self.first].append("body")
        let text = String(decoding: pending[Self.first].array, as: UTF8.self)
        #expect(text == "HTTP/1.1 200 OK\r\n\r\nbody")
        let taken = unsafe String(decoding: pending.take(Self.first), as: UTF8.self)
        let left = unsafe pending.take(Self.first).count
        #expect(taken == text && left == 0)
    }

    @Test(arguments: [Self.next, Handle<Exchange>(index: 4, generation: 1), .none])
    func `what one exchange left never belongs to another`(_ other: Handle<Exchange>) {
        var pending = PendingResponse()
        pending[Self.first].append("left")
        let taken = unsafe pending.take(other).count
        let read = pending[other].count
        pending[Self.first].append("again")
        pending[other].append("own")
        let text = String(decoding: pending[other].array, as: UTF8.self)
        let back = pending[Self.first].count
        #expect(taken == 0 && read == 0 && text == "own" && back == 0)
    }
}
