import MartletCore
import MartletHTTP
import Testing

@Suite struct WebSocketHandshakeTests {
    static let keys = [
        ("dGhlIHNhbXBsZSBub25jZQ==", true), ("AAAAAAAAAAAAAAAAAAAAAA==", true), ("++//++//++//++//++//+w==", true),
        ("", false), ("dGhlIHNhbXBsZSBub25jZQ", false), ("dGhlIHNhbXBsZSBub25jZQ=", false),
        ("dGhlIHNhbXBsZSBub25jZQ===", false), ("dGhlIHNhbXBsZSBub25jZQAA", false), ("dGhl_HNhbXBsZSBub25jZQ==", false),
        ("dGhlIHNhbXBsZSBub25j =Q=", false), ("dGhlIHNhbXBsZSBub25jZ===", false),
    ]

    @Test(arguments: keys)
    func `a key is sixteen bytes in base64`(text: String, isValid: Bool) {
        let bytes = Array(text.utf8)
        let result = WebSocketKey.isValid(bytes.span, ByteRange(from: 0, to: bytes.count))
        #expect(result == isValid)
    }

    static let lists: [(String, [String], Bool)] = [
        ("websocket", ["websocket"], false), ("h2c, WebSocket", ["h2c", "WebSocket"], false),
        (" a/1 ,, b/2.0 ,", ["a/1", "b/2.0"], false), ("", [], false), (",", [], false),
        ("a b", [], true), ("a/", [], true), ("/1", [], true), ("a/1/2", [], true), ("a;q=1", [], true),
        ("ok, \"x\"", ["ok"], true),
        (Array(repeating: "a", count: 17).joined(separator: ","), Array(repeating: "a", count: 16), true),
    ]

    @Test(arguments: lists)
    func `a list of protocols is read one by one`(text: String, names: [String], isMalformed: Bool) {
        let bytes = Array(text.utf8)
        var list = UpgradeList(ByteRange(from: 0, to: bytes.count))
        var found: [String] = []
        while let range = list.next(bytes.span) { found.append(String(decoding: bytes[range.bounds], as: UTF8.self)) }
        #expect(found == names && list.isMalformed == isMalformed)
    }

    @Test func `a Close frame carries its code and reason, masked for a server`() {
        var plain = ByteBuffer()
        plain.append(webSocketClose: .credentialEnded, "over", mask: nil)
        #expect(plain.array == [0x88, 6, 0x11, 0x31] + Array("over".utf8))
        var masked = ByteBuffer()
        masked.append(webSocketClose: .goingAway, "over", mask: 0x0102_0304)
        let frame = masked.array
        #expect(Array(frame.prefix(6)) == [0x88, 0x86, 1, 2, 3, 4])
        let payload = frame.dropFirst(6).enumerated().map { $1 ^ [1, 2, 3, 4][$0 % 4] }
        #expect(payload == [0x03, 0xE9] + Array("over".utf8))
        var tracker = WebSocketFrameTracker(from: .client)
        var offset = 0
        let event = tracker.next(frame.span, from: &offset)
        #expect(event == .pass(ByteRange(from: 0, to: frame.count)) && tracker.hasClosed)
    }
}
