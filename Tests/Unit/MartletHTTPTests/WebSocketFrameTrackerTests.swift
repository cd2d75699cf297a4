import MartletCore
import MartletHTTP
import MartletTesting
import Testing

@Suite struct WebSocketFrameTrackerTests {
    struct Case: CustomTestStringConvertible {
        let name: String
        let sender: WebSocketFrameTracker.Sender
        let bytes: [UInt8]
        /// How many bytes pass.
        let passed: Int
        let end: End

        init(
            _ name: String, from sender: WebSocketFrameTracker.Sender = .server, _ bytes: [UInt8], passes: Int? = nil,
            _ end: End = .open
        ) {
            (self.name, self.sender, self.bytes, self.end) = (name, sender, bytes, end)
            passed = passes ?? bytes.count
        }

        var testDescription: String { name }
    }

    enum End: Equatable {
        case open, midFrame, closed
        case broken(WebSocketViolation)
    }

    static let mask: [UInt8] = [1, 2, 3, 4]
    static let hello: [UInt8] = [0x81, 0x02, 0x68, 0x69]

    static let cases = [
        Case("nothing", []),
        Case("a text", hello),
        Case("a masked text", from: .client, [0x81, 0x82] + mask + [0x69, 0x6B]),
        Case("an empty frame", [0x82, 0]),
        Case("an empty masked frame", from: .client, [0x82, 0x80] + mask),
        Case("125 bytes", [0x82, 125] + Payload.bytes(125)),
        Case("126 bytes", [0x82, 126, 0, 126] + Payload.bytes(126)),
        Case("65 535 bytes", from: .client, [0x82, 0xFE, 0xFF, 0xFF] + mask + Payload.bytes(65_535)),
        Case("65 536 bytes", [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0] + Payload.bytes(65_536)),
        Case("the longest frame, begun", [0x82, 127, 0x7F] + [UInt8](repeating: 0xFF, count: 7) + [1, 2], .midFrame),
        Case("fragments around a ping", [0x01, 1, 0x61, 0x89, 0, 0x80, 1, 0x62]),
        Case("an extension bit without an extension", hello + [0xC1, 1, 0x61], passes: 4, .broken(.reservedBits)),
        Case("another one", from: .client, [0xA1, 0x80] + mask, passes: 0, .broken(.reservedBits)),
        Case("the last one, of a control frame", [0x99, 0], passes: 0, .broken(.reservedBits)),
        Case("an unknown opcode", [0x83, 1, 0x61]),
        Case("an unknown control opcode", [0x8F, 1, 0x61]),
        Case("a ping of 125 bytes", [0x89, 125] + Payload.bytes(125)),
        Case("the first byte of a header", hello + [0x81], passes: 4),
        Case("a header without its mask", from: .client, [0x81, 0x82, 1, 2, 3], passes: 0),
        Case("a payload begun", [0x81, 5, 0x61], .midFrame),
        Case("a Close without a word", [0x88, 0], .closed),
        Case("a Close with a code", [0x88, 2, 0x03, 0xE8], .closed),
        Case("bytes behind a Close", [0x88, 2, 0x03, 0xE8] + hello, passes: 4, .closed),
        Case("a Close begun", [0x88, 2, 0x03], .midFrame),
        Case("half a status code", hello + [0x88, 1, 0x03], passes: 4, .broken(.halfStatusCode)),
        Case("a client's frame without a mask", from: .client, hello, passes: 0, .broken(.unmaskedClientFrame)),
        Case("a server's frame with one", hello + [0x81, 0x80] + mask, passes: 4, .broken(.maskedServerFrame)),
        Case("a ping of 126 bytes", [0x89, 126, 0, 126], passes: 0, .broken(.longControlFrame)),
        Case("a fragmented Close", [0x08, 0], passes: 0, .broken(.fragmentedControlFrame)),
        Case("125 bytes in the medium form", [0x82, 126, 0, 125], passes: 0, .broken(.badLength)),
        Case(
            "65 535 bytes in the long form", [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], passes: 0, .broken(.badLength)),
        Case("the highest bit of a length", [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], passes: 0, .broken(.badLength)),
    ]

    @Test(arguments: cases)
    func `passes whole headers and payloads, however they are split`(_ example: Case) {
        let whole = Follower.follow(example.bytes, from: example.sender, splits: [])
        #expect(whole.passed.elementsEqual(example.bytes.prefix(example.passed)) && whole.end == example.end)
        for split in example.bytes.indices.prefix(300) {
            #expect(Follower.follow(example.bytes, from: example.sender, splits: [split]) == whole, "\(split)")
        }
        let all = Follower.follow(example.bytes, from: example.sender, splits: Array(example.bytes.indices))
        #expect(all == whole)
    }

    @Test func `lets extension bits pass where an extension was agreed on`() {
        let bytes: [UInt8] = [0xC1, 1, 0x61, 0xF1, 0]
        var tracker = WebSocketFrameTracker(from: .server)
        tracker.hasExtensions = true
        var offset = 0
        #expect(tracker.next(bytes.span, from: &offset) == .pass(ByteRange(from: 0, to: 5)))
    }

    @Test func `stops at frame boundaries on request`() {
        let bytes = Self.hello + [0x89, 0] + Self.hello
        var tracker = WebSocketFrameTracker(from: .server)
        var offset = 0
        let begun = Array(bytes[..<3])
        let first = tracker.next(begun.span, from: &offset)
        #expect(first == .pass(ByteRange(from: 0, to: 3)) && !tracker.isBetweenFrames)
        let rest = Array(bytes[3...])
        offset = 0
        let event = tracker.next(rest.span, from: &offset, stopsBetweenFrames: true)
        #expect(event == .pass(ByteRange(from: 0, to: 1)) && offset == 1 && tracker.isBetweenFrames)
    }

    @Test func `follows random frames to their end`() {
        var random = SeededGenerator(seed: 4401)
        for _ in 0..<300 {
            let sender: WebSocketFrameTracker.Sender = Bool.random(using: &random) ? .client : .server
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) { bytes += Self.frame(from: sender, &random) }
            let splits = (0..<4).map { _ in Int.random(in: 0..<bytes.count, using: &random) }.sorted()
            let outcome = Follower.follow(bytes, from: sender, splits: splits)
            #expect(outcome.passed == bytes && outcome.end == .open)
        }
    }

    private static func frame(from sender: WebSocketFrameTracker.Sender, _ random: inout SeededGenerator) -> [UInt8] {
        let count = [0, 1, 125, 126, 127, 400, 65_535, 65_536].randomElement(using: &random) ?? 0
        let bit: UInt8 = sender == .client ? 0x80 : 0
        var bytes: [UInt8] = [UInt8.random(in: 0...2, using: &random) | 0x80]
        switch count {
        case ..<126: bytes.append(bit | UInt8(count))
        case ..<65_536: bytes += [bit | 126, UInt8(count >> 8), UInt8(count & 0xFF)]
        default: bytes += [bit | 127, 0, 0, 0, 0, 0, UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
        }
        return bytes + (sender == .client ? mask : []) + Payload.bytes(count)
    }
}

/// Feeds bytes in pieces and collects the forwarded ones.
private struct Follower: Equatable {
    var passed: [UInt8] = []
    var end = WebSocketFrameTrackerTests.End.open

    static func follow(
        _ bytes: [UInt8], from sender: WebSocketFrameTracker.Sender, splits: [Int]
    ) -> Follower {
        var tracker = WebSocketFrameTracker(from: sender)
        var result = Follower()
        let edges = [0] + splits + [bytes.count]
        for (start, end) in zip(edges, edges.dropFirst()) {
            guard result.take(Array(bytes[start..<end]), &tracker) else { return result }
        }
        result.end = tracker.hasClosed ? .closed : tracker.isBetweenFrames ? .open : .midFrame
        return result
    }

    /// - Returns: whether the next piece may follow.
    private mutating func take(_ piece: [UInt8], _ tracker: inout WebSocketFrameTracker) -> Bool {
        var offset = 0
        while true {
            switch tracker.next(piece.span, from: &offset) {
            case .pass(let range): passed += piece[range.bounds]
            case .passHeader:
                var header = ByteBuffer()
                tracker.appendHeader(to: &header)
                #expect(header.count == tracker.headerBytes)
                passed += header.array
            case .needMore, .closed: return true
            case .violation(let violation):
                end = .broken(violation)
                return false
            }
        }
    }
}
