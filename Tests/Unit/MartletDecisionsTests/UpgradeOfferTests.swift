import MartletCore
import MartletHTTP
import MartletResponder
import Testing

@testable import MartletDecisions

/// A request's head, and what it offers on a route.
struct OfferCase: CustomTestStringConvertible, Sendable {
    enum Expected: Equatable, Sendable {
        case ignored
        case rejected(ErrorCode)
        case accepted(String, isWebSocket: Bool)
    }

    static let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    static let version = "Sec-WebSocket-Version: 13"
    static let malformed = Expected.rejected("request.upgrade_malformed")
    static let refused = Expected.rejected("request.upgrade_not_allowed")
    static let wrongVersion = Expected.rejected("request.websocket_version")
    static let webSocket = Expected.accepted("websocket", isWebSocket: true)

    let testDescription: String
    let method: String
    let upgrade: String
    let fields: [String]
    let allowed: [String]
    let expected: Expected

    init(
        _ name: String, _ upgrade: String, with fields: [String] = [OfferCase.key, OfferCase.version],
        method: String = "GET", allowed: [String] = ["websocket"], _ expected: Expected
    ) {
        testDescription = "\(name): \(upgrade)"
        self.upgrade = upgrade
        self.fields = fields
        self.method = method
        self.allowed = allowed
        self.expected = expected
    }

    var head: [UInt8] {
        var text = "\(method) / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: \(upgrade)\r\n"
        for field in fields { text += field + "\r\n" }
        return Array((text + "\r\n").utf8)
    }

    private static let seventeen = Array(repeating: "a", count: 17).joined(separator: ",")

    static let lists: [OfferCase] = [
        OfferCase("in lower case", "websocket", webSocket),
        OfferCase("in another case", "WebSocket", .accepted("WebSocket", isWebSocket: true)),
        OfferCase("h2c", "h2c", .ignored),
        OfferCase("h2c in another case", "H2C", .ignored),
        OfferCase("h2c where it is allowed", "h2c", allowed: ["h2c"], .ignored),
        OfferCase("h2c first", "h2c, websocket", webSocket),
        OfferCase("h2c last", "websocket, h2c", webSocket),
        OfferCase("an empty list", ",", .ignored),
        OfferCase("not allowed", "chat", refused),
        OfferCase("nothing allowed", "websocket", allowed: [], refused),
        OfferCase("h2c and not allowed", "h2c, chat", refused),
        OfferCase("the first that is allowed", "chat, irc, websocket", webSocket),
        OfferCase(
            "the client's order", "chat, websocket", allowed: ["websocket", "chat"],
            .accepted("chat", isWebSocket: false)),
        OfferCase("a prefix of a name", "web", refused),
        OfferCase("a longer name", "websockets", refused),
        OfferCase(
            "a version that the name allows", "Chat/2", with: [], allowed: ["chat"],
            .accepted("Chat/2", isWebSocket: false)),
        OfferCase(
            "the allowed version", "chat/2", with: [], allowed: ["chat/2"], .accepted("chat/2", isWebSocket: false)),
        OfferCase("another version", "chat/1", with: [], allowed: ["chat/2"], refused),
        OfferCase("no version", "chat", with: [], allowed: ["chat/2"], refused),
        OfferCase("a version of WebSocket", "websocket/13", refused),
        OfferCase("a version of WebSocket in another case", "WebSocket/13", refused),
        OfferCase("a version of WebSocket first", "websocket/13, websocket", webSocket),
        OfferCase("a version of WebSocket last", "websocket, websocket/13", webSocket),
        OfferCase(
            "the allowed version of WebSocket", "websocket/13", with: [], allowed: ["websocket", "websocket/13"],
            .accepted("websocket/13", isWebSocket: false)),
        OfferCase("another version of WebSocket", "websocket/8", allowed: ["websocket", "websocket/13"], refused),
        OfferCase("WebSocket without the allowed version", "websocket", allowed: ["websocket/13"], refused),
        OfferCase("no protocol", "a b", malformed),
        OfferCase("a name without a version", "chat/", malformed),
        OfferCase("a version without a name", "/1", malformed),
        OfferCase("a malformed list after h2c", "h2c, \"x\"", malformed),
        OfferCase("a malformed list after one that is not allowed", "chat, a/1/2", malformed),
        OfferCase("what follows the chosen one", "websocket, a/1/2", webSocket),
        OfferCase("too many", seventeen, malformed),
    ]

    static let unknown = Expected.rejected("request.protocol_unknown")

    /// What an extended CONNECT asks for.
    static let connects: [OfferCase] = [
        OfferCase("WebSocket", "websocket", webSocket),
        OfferCase("WebSocket in another case", "WebSocket", .accepted("WebSocket", isWebSocket: true)),
        OfferCase("WebSocket where it is not allowed", "websocket", allowed: [], refused),
        OfferCase("one that the route allows", "chat", allowed: ["chat"], .accepted("chat", isWebSocket: false)),
        OfferCase("one that is not allowed", "chat", unknown), OfferCase("h2c", "h2c", unknown),
        OfferCase("h2c in another case", "H2C", unknown),
        OfferCase("h2c where it is allowed", "h2c", allowed: ["h2c"], unknown),
        OfferCase("a version of WebSocket", "websocket/13", unknown),
        OfferCase("a token that is no name of a protocol", "chat/", unknown),
    ]

    static let requests: [OfferCase] = [
        OfferCase("with another method", "websocket", method: "POST", malformed),
        OfferCase("with another method, not allowed", "chat", method: "POST", refused),
        OfferCase("with a body", "websocket", with: [key, version, "Content-Length: 2"], malformed),
        OfferCase("with an empty body", "websocket", with: [key, version, "Content-Length: 0"], webSocket),
        OfferCase("with chunks", "websocket", with: [key, version, "Transfer-Encoding: chunked"], malformed),
        OfferCase("without a key", "websocket", with: [version], malformed),
        OfferCase("with a short key", "websocket", with: ["Sec-WebSocket-Key: dGhl", version], malformed),
        OfferCase("with two keys", "websocket", with: [key, key, version], malformed),
        OfferCase(
            "with a second key in another spelling", "websocket",
            with: [key, version, "Sec_WebSocket_Key: AAAAAAAAAAAAAAAAAAAAAA=="], malformed),
        OfferCase(
            "with one key in another spelling", "websocket",
            with: ["Sec_WebSocket_Key: dGhlIHNhbXBsZSBub25jZQ==", version], webSocket),
        OfferCase("without a version", "websocket", with: [key], wrongVersion),
        OfferCase("with another version", "websocket", with: [key, "Sec-WebSocket-Version: 8"], wrongVersion),
        OfferCase("with a longer version", "websocket", with: [key, "Sec-WebSocket-Version: 13, 8"], wrongVersion),
        OfferCase("with two versions", "websocket", with: [key, version, version], wrongVersion),
        OfferCase(
            "with a second version in another spelling", "websocket",
            with: [key, version, "Sec-WebSocket_Version: 13"], wrongVersion),
        OfferCase("without both: the version counts", "websocket", with: [], wrongVersion),
    ]
}

/// The fields of a 101, and whether they match an offer.
struct SwitchCase: CustomTestStringConvertible, Sendable {
    static let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    let testDescription: String
    let offered: String
    let fields: [String]
    let expected: Bool

    init(_ name: String, of offered: String = "websocket", _ fields: [String], _ expected: Bool) {
        testDescription = name
        self.offered = offered
        self.fields = fields
        self.expected = expected
    }

    var head: [UInt8] {
        var text = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
        for field in fields { text += field + "\r\n" }
        return Array((text + "\r\n").utf8)
    }

    static let all: [SwitchCase] = [
        SwitchCase("a WebSocket", ["Upgrade: websocket", accept], true),
        SwitchCase("in another case", ["Upgrade: WebSocket", accept], true),
        SwitchCase("offered in another case", of: "WEBSOCKET", ["Upgrade: websocket", accept], true),
        SwitchCase("with extensions", ["Upgrade: websocket", accept, "Sec-WebSocket-Extensions: x"], true),
        SwitchCase("no protocol", [accept], false),
        SwitchCase("two protocols", ["Upgrade: websocket, chat", accept], false),
        SwitchCase("another protocol", ["Upgrade: chat", accept], false),
        SwitchCase("no digest", ["Upgrade: websocket"], false),
        SwitchCase(
            "another digest", ["Upgrade: websocket", "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA="], false),
        SwitchCase(
            "the digest in another case", ["Upgrade: websocket", "Sec-WebSocket-Accept: S3PPLMBITXAQ9KYGZZHZRBK+XOO="],
            false),
        SwitchCase("an empty digest", ["Upgrade: websocket", "Sec-WebSocket-Accept:"], false),
        SwitchCase("the digest twice", ["Upgrade: websocket", accept, accept], false),
        SwitchCase("a length", ["Upgrade: websocket", accept, "Content-Length: 0"], true),
        SwitchCase("chunks", ["Upgrade: websocket", accept, "Transfer-Encoding: chunked"], true),
        SwitchCase("both", ["Upgrade: websocket", accept, "Content-Length: 5", "Transfer-Encoding: x"], true),
        SwitchCase("another protocol that was offered", of: "chat/2", ["Upgrade: Chat/2"], true),
        SwitchCase("a digest for another protocol", of: "chat/2", ["Upgrade: chat/2", accept, accept], true),
        SwitchCase("another version of it", of: "chat/2", ["Upgrade: chat/3"], false),
        SwitchCase("no version of it", of: "chat/2", ["Upgrade: chat"], false),
        SwitchCase("a length for another protocol", of: "chat/2", ["Upgrade: chat/2", "Content-Length: 0"], true),
    ]
}

@Suite struct UpgradeOfferTests {
    @Test(arguments: OfferCase.lists + OfferCase.requests)
    func `is accepted, rejected or ignored`(example: OfferCase) throws {
        let bytes = example.head
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        let outcome = parser.parse(bytes.span, into: &head)
        try #require(outcome == .complete(bytes.count))
        switch UpgradeOffer.read(head, bytes.span, allowed: example.allowed) {
        case .none: #expect(example.expected == .ignored)
        case .rejected(let failure): #expect(example.expected == .rejected(failure.reason))
        case .accepted(let accepted):
            let name = String(decoding: bytes[accepted.name.bounds], as: UTF8.self)
            #expect(example.expected == .accepted(name, isWebSocket: accepted.isWebSocket))
            // The example of RFC 6455 §1.3.
            #expect(accepted.accept == (accepted.isWebSocket ? "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" : ""))
        }
    }

    @Test(arguments: OfferCase.connects)
    func `is never ignored in an extended CONNECT`(example: OfferCase) throws {
        let bytes = example.head
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        let outcome = parser.parse(bytes.span, into: &head)
        try #require(outcome == .complete(bytes.count))
        switch UpgradeOffer.read(head, bytes.span, allowed: example.allowed, isConnect: true) {
        case .none: Issue.record("ignored")
        case .rejected(let failure): #expect(example.expected == .rejected(failure.reason))
        case .accepted(let accepted):
            let name = String(decoding: bytes[accepted.name.bounds], as: UTF8.self)
            #expect(example.expected == .accepted(name, isWebSocket: accepted.isWebSocket))
        }
    }

    @Test func `is nothing where Connection does not name it`() throws {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n".utf8)
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        let outcome = parser.parse(bytes.span, into: &head)
        try #require(outcome == .complete(bytes.count))
        var isIgnored = false
        if case .none = UpgradeOffer.read(head, bytes.span, allowed: ["websocket"]) { isIgnored = true }
        #expect(isIgnored)
    }

    @Test(arguments: SwitchCase.all)
    func `is matched by a 101 for the same protocol and key`(example: SwitchCase) throws {
        var offer = UpgradeOffer()
        // What the slot's previous tunnel left is replaced.
        let former = Array("irc".utf8)
        let accepted = UpgradeOffer.Accepted(name: ByteRange(from: 0, to: 3), isWebSocket: true, accept: "x")
        offer.set(accepted, former.span)
        try set(&offer, to: example.offered)
        let bytes = example.head
        var head = ResponseHead(maximumFields: 20)
        var parser = ResponseParser(maximumHeadBytes: 4096)
        let outcome = parser.parse(bytes.span, requestMethod: .get, into: &head)
        try #require(outcome == .complete(bytes.count))
        let matches = offer.matches(head, bytes.span)
        #expect(matches == example.expected)
        offer.release()
        let afterwards = offer.matches(head, bytes.span)
        #expect(!afterwards)
    }

    private func set(_ offer: inout UpgradeOffer, to name: String) throws {
        let bytes = OfferCase("offer", name, OfferCase.webSocket).head
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        let outcome = parser.parse(bytes.span, into: &head)
        try #require(outcome == .complete(bytes.count))
        guard case .accepted(let accepted) = UpgradeOffer.read(head, bytes.span, allowed: ["websocket", "chat"]) else {
            Issue.record("\(name) was not accepted")
            return
        }
        offer.set(accepted, bytes.span)
    }
}
