import MartletHTTP2
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `HTTP/2 state of a downstream connection` {
    @Test func `begins without streams and without times`() throws {
        let state = DownstreamHTTP2State(try HTTP2Session.server(HTTP2Options()))
        let (count, isEmpty) = (state.slots.count, state.slots.isEmpty)
        let (headStartedAt, idleSince) = (state.headStartedAt, state.idleSince)
        let (isServer, streams) = (state.session.isServer, state.session.streams)
        state.session.free()
        #expect(count == 0 && isEmpty)
        #expect(headStartedAt == .max && idleSince == .max)
        #expect(isServer && streams == 0)
    }

    @Test func `has the slot of each stream until it is removed`() throws {
        let state = DownstreamHTTP2State(try HTTP2Session.server(HTTP2Options()))
        state.slots[1] = 7
        state.slots[3] = 0
        state.slots[Int32.max] = 9
        let found = [state.slots[1], state.slots[3], state.slots[5], state.slots[Int32.max]]
        state.slots[1] = nil
        state.slots[3] = 8
        let changed = [state.slots[1], state.slots[3]]
        let numbers = state.slots.values.sorted()
        state.session.free()
        #expect(found == [7, 0, nil, 9])
        #expect(changed == [nil, 8])
        #expect(numbers == [8, 9])
    }

    @Test func `has two times that are independent`() throws {
        let state = DownstreamHTTP2State(try HTTP2Session.server(HTTP2Options()))
        state.headStartedAt = 5
        let first = [state.headStartedAt, state.idleSince]
        state.idleSince = 6
        state.headStartedAt = .max
        let second = [state.headStartedAt, state.idleSince]
        state.session.free()
        #expect(first == [5, Int64.max])
        #expect(second == [Int64.max, 6])
    }

    @Test func `is shared by its copies`() throws {
        let state = DownstreamHTTP2State(try HTTP2Session.server(HTTP2Options()))
        let copy = state
        copy.slots[1] = 4
        copy.idleSince = 12
        let (number, idleSince) = (state.slots[1], state.idleSince)
        state.session.free()
        #expect(number == 4 && idleSince == 12)
    }

    @Test func `is separate for each connection`() throws {
        let first = DownstreamHTTP2State(try HTTP2Session.server(HTTP2Options()))
        let second = DownstreamHTTP2State(try HTTP2Session.server(HTTP2Options()))
        first.slots[1] = 4
        first.headStartedAt = 1
        let (number, headStartedAt) = (second.slots[1], second.headStartedAt)
        first.session.free()
        second.session.free()
        #expect(number == nil && headStartedAt == .max)
    }
}

@Suite struct `HTTP/2 state of an upstream connection` {
    @Test func `begins without streams`() throws {
        let state = UpstreamHTTP2State(try HTTP2Session.client(HTTP2Options()))
        let (count, waiting, lastFrameAt) = (state.slots.count, state.waiting.count, state.lastFrameAt)
        let isServer = state.session.isServer
        #expect(count == 0 && waiting == 0 && lastFrameAt == 0 && !isServer)
    }

    @Test func `has the slot of each stream until it is removed`() throws {
        let state = UpstreamHTTP2State(try HTTP2Session.client(HTTP2Options()))
        // More than the first capacity of the map.
        for stream in Int32(0)..<100 { state.slots[2 * stream + 1] = stream }
        let full = state.slots.count
        for stream in Int32(0)..<99 { state.slots[2 * stream + 1] = nil }
        let (count, last, removed) = (state.slots.count, state.slots[199], state.slots[197])
        #expect(full == 100 && count == 1 && last == 99 && removed == nil)
    }

    @Test func `keeps the order of the streams that wait for the connection`() throws {
        let state = UpstreamHTTP2State(try HTTP2Session.client(HTTP2Options()))
        for index in Int32(0)..<3 {
            state.waiting.append(Handle<UpstreamConnection>(index: index, generation: 2))
        }
        state.lastFrameAt = 8
        let (indices, lastFrameAt) = (state.waiting.map(\.index), state.lastFrameAt)
        #expect(indices == [0, 1, 2] && lastFrameAt == 8)
    }
}

@Suite struct `The preface of HTTP/2` {
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private func compare(_ bytes: [UInt8]) -> HTTP2Preface.Match {
        unsafe bytes.withUnsafeBufferPointer { unsafe HTTP2Preface.compare($0) }
    }

    @Test func `is incomplete up to its last byte`() {
        #expect(Self.preface.count == 24)
        for count in 0..<24 { #expect(compare(Array(Self.preface[..<count])) == .incomplete, "\(count) bytes") }
        #expect(compare(Self.preface) == .whole)
    }

    @Test func `is whole whatever follows`() {
        #expect(compare(Self.preface + [0]) == .whole)
        #expect(compare(Self.preface + Self.preface) == .whole)
        #expect(compare(Self.preface + [UInt8](repeating: 0xFF, count: 1000)) == .whole)
    }

    @Test func `has no other byte at any offset`() {
        for offset in 0..<24 {
            for flip in [UInt8(0x01), 0x20, 0x80] {
                var bytes = Self.preface
                bytes[offset] ^= flip
                #expect(compare(bytes) == .other, "offset \(offset)")
                #expect(compare(Array(bytes[...offset])) == .other, "offset \(offset)")
                #expect(compare(bytes + [0, 0]) == .other, "offset \(offset)")
            }
        }
    }

    @Test(arguments: [
        "G", "GET / HTTP/1.1\r\n", "PRI * HTTP/1.1\r\n", "PRI / HTTP/2.0\r\n\r\n", "pri * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        " PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\n\nSM\n\n", "POST", "\u{16}\u{3}\u{1}",
    ])
    func `is no request, nor TLS`(_ text: String) {
        #expect(compare(Array(text.utf8)) == .other)
    }

    @Test func `is incomplete without bytes`() {
        let match = unsafe HTTP2Preface.compare(UnsafeBufferPointer(start: nil, count: 0))
        #expect(match == .incomplete)
    }
}
