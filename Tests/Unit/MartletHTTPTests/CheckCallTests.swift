import MartletCore
import Testing

@testable import MartletHTTP

/// Checks by gRPC: the message as bytes, and the head that it becomes.
@Suite struct CheckCallTests {
    private static func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] {
        precondition(content.count < 16384)
        let length = UInt8(content.count & 0x7F)
        let count = content.count < 0x80 ? [length] : [length | 0x80, UInt8(content.count >> 7)]
        return [number << 3 | 2] + count + content
    }

    private static func text(_ number: UInt8, _ text: String) -> [UInt8] { field(number, Array(text.utf8)) }

    /// An entry of a map.
    private static func entry(_ number: UInt8, _ name: String, _ value: String) -> [UInt8] {
        field(number, text(1, name) + text(2, value))
    }

    private static func framed(_ message: [UInt8]) -> [UInt8] {
        [0] + [24, 16, 8, 0].map { UInt8(message.count >> $0 & 0xFF) } + message
    }

    /// A call about a request, with more fields of it and of the attributes.
    private static func call(
        _ method: String = "GET", _ path: String = "/a", _ host: String = "h", _ more: [UInt8] = [],
        attributes: [UInt8] = []
    ) -> [UInt8] {
        let http = text(2, method) + text(4, path) + text(5, host) + more
        return framed(field(1, field(4, field(2, http)) + attributes))
    }

    /// The head, or the reason with its field.
    private static func head(_ bytes: [UInt8]) -> String {
        do throws(CheckError) {
            var out = ByteBuffer()
            try CheckCall(bytes.span).writeHead(at: Array("/auth/check".utf8), bytes.span, into: &out)
            return String(decoding: out.array, as: UTF8.self)
        } catch {
            return [error.code.rawValue, error.field?.name].compactMap { $0 }.joined(separator: " ")
        }
    }

    @Test func `a request becomes the head of a check of its path`() {
        let fields =
            Self.entry(3, ":path", "/a") + Self.entry(3, "accept", "*/*") + Self.entry(3, "X-Empty", "")
            + Self.entry(3, "host", "other") + Self.entry(3, "content-length", "5") + Self.text(6, "https")
        let text = Self.head(Self.call("POST", "/a?b=c", "api.test", fields))
        #expect(
            text == """
                POST /auth/check/a?b=c HTTP/1.1\r\nHost: api.test\r\naccept: */*\r\nX-Empty: \r\n\
                x-forwarded-proto: https\r\n\r\n
                """)
    }

    @Test func `the source is the client where no field names another one`() {
        let address = Self.field(1, Self.field(1, Self.field(1, Self.text(2, "192.0.2.7") + [0x18, 0x50])))
        let source = Self.field(1, Array(address.dropFirst(2)))
        #expect(Self.head(Self.call(attributes: source)).hasSuffix("\r\nx-forwarded-for: 192.0.2.7\r\n\r\n"))
        let named = Self.call("GET", "/a", "h", Self.entry(3, "x-forwarded-for", "192.0.2.8"), attributes: source)
        #expect(Self.head(named).hasSuffix("\r\nx-forwarded-for: 192.0.2.8\r\n\r\n"))
    }

    @Test func `fields may come as they were received, also twice`() {
        let raw = [("a", UInt8(2)), ("b", 3)].flatMap { value, number in
            Self.field(1, Self.text(1, "x-one") + Self.text(number, value))
        }
        let text = Self.head(Self.call("GET", "/a", "h", Self.field(13, raw)))
        #expect(text.contains("\r\nx-one: a\r\nx-one: b\r\n"))
        let both = Self.field(13, raw) + Self.entry(3, "a", "b")
        #expect(Self.head(Self.call("GET", "/a", "h", both)) == "check.message_invalid")
    }

    @Test func `a query of its own is appended, and is no second one`() {
        #expect(Self.head(Self.call("GET", "/a", "h", Self.text(7, "b=c"))).hasPrefix("GET /auth/check/a?b=c HTTP/1.1"))
        #expect(Self.head(Self.call("GET", "/a?b", "h", Self.text(7, "c"))) == "check.field_conflict path")
        #expect(Self.head(Self.call("GET", "/a", "h", Self.text(7, "c d"))) == "check.field_conflict path")
    }

    @Test func `extensions say how a rejection looks`() throws {
        let deny = Self.entry(10, "deny", "403") + Self.entry(10, "browser", "1") + Self.entry(10, "other", "1")
        let call = try CheckCall(Self.call(attributes: deny).span)
        #expect(call.deniesAlike && call.redirectsBrowsers)
        let others = Self.entry(10, "deny", "404") + Self.entry(10, "browser", "true")
        let other = try CheckCall(Self.call(attributes: others).span)
        #expect(!other.deniesAlike && !other.redirectsBrowsers)
    }

    @Test(arguments: [
        ("", "/a", "h", "check.field_invalid method"), ("get", "/a", "h", "check.field_invalid method"),
        ("G T", "/a", "h", "check.field_invalid method"), ("GET", "", "h", "check.field_invalid path"),
        ("GET", "a", "h", "check.field_invalid path"), ("OPTIONS", "*", "h", "check.field_invalid path"),
        ("GET", "/a HTTP/1.1\r\nX: y", "h", "check.field_invalid path"), ("GET", "/a", "", "check.field_invalid Host"),
        ("GET", "/a", "h\r\nX: y", "check.field_invalid Host"), ("GET", "/a", "u@h", "check.field_invalid Host"),
    ])
    func `a part that no request could have is rejected`(
        _ method: String, _ path: String, _ host: String, _ reason: String
    ) {
        #expect(Self.head(Self.call(method, path, host)) == reason)
    }

    @Test(arguments: [
        ("a", "b\r\nc: d", "check.message_invalid"), ("a b", "c", "check.message_invalid"),
        ("a:", "b", "check.message_invalid"), ("a", "\0", "check.message_invalid"),
        ("Authorization", "Bearer a,Bearer b", "check.field_repeated Authorization"),
    ])
    func `a field that would be another one is rejected`(_ name: String, _ value: String, _ reason: String) {
        #expect(Self.head(Self.call("GET", "/a", "h", Self.entry(3, name, value))) == reason)
    }

    @Test func `a comma within quotes joins no credentials`() {
        let fields = Self.entry(3, "authorization", #"X a="b, \", c""#)
        #expect(Self.head(Self.call("GET", "/a", "h", fields)).contains(#"authorization: X a="b, \", c""#))
    }

    @Test func `a message that is cut anywhere is rejected`() {
        let source = Self.field(1, Self.field(1, Self.field(1, Self.text(2, "192.0.2.7"))))
        let whole = Self.call("GET", "/a", "h", Self.entry(3, "a", "b"), attributes: source)
        #expect(Self.head(whole).hasPrefix("GET "))
        for count in 0..<whole.count {
            #expect(Self.head(Array(whole.prefix(count))) == "check.message_invalid", "\(count)")
            // With a length that fits, the fields within do not.
            let cut = Self.framed(Array(whole.dropFirst(5).prefix(max(count - 5, 0))))
            #expect(count <= 5 || Self.head(cut) == "check.message_invalid", "\(count)")
        }
    }

    @Test(
        arguments: [
            [0x0B], [0x0C], [0x00, 0x00], [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
            [0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02], [0x08, 0x80], [0x09, 0, 0], [0x0D, 0],
            [0x08, 0x01], [0x0A, 0, 0x0A, 0], [0x0A, 2, 0x20, 1], [0x0A, 4, 0x22, 0, 0x22, 0],
            [0x0A, 6, 0x22, 4, 0x12, 2, 0x10, 1],
        ] as [[UInt8]])
    func `a message with a field that cannot be is rejected`(_ bytes: [UInt8]) {
        #expect(Self.head(Self.framed(bytes)) == "check.message_invalid")
    }

    @Test func `fields that nothing here knows are skipped`() {
        let unknown: [UInt8] = [0x78, 0x80, 0x01, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7D, 1, 2, 3, 4, 0x7A, 1, 0xFF]
        let call = Self.call("GET", "/a", "h", unknown, attributes: unknown)
        #expect(Self.head(call) == "GET /auth/check/a HTTP/1.1\r\nHost: h\r\n\r\n")
    }

    @Test func `a response that lets a request pass replaces, deletes and adds fields`() {
        let head = Array("HTTP/1.1 200 OK\r\nDate: now\r\nX-A: b\r\nX-E:\r\nSet-Cookie: c=d\r\n\r\n".utf8)
        let response = CheckCallResponse(status: 200, head: head.span, body: []) { line in
            switch line[0] {
            case UInt8(ascii: "X"): .request
            case UInt8(ascii: "S"): .client
            default: .none
            }
        }
        let kept = Self.field(2, Self.field(1, Self.text(1, "x-a") + Self.text(2, "b")) + [0x18, 2])
        let added = Self.field(6, Self.field(1, Self.text(1, "set-cookie") + Self.text(2, "c=d")))
        let message = Self.field(1, []) + Self.field(3, kept + Self.text(5, "x-e") + added)
        #expect(response.framed == Self.framed(message))
    }

    @Test(arguments: [(401, [0x08, 16]), (403, [0x08, 7]), (302, [0x08, 7]), (429, [0x08, 8]), (503, [0x08, 14])])
    func `a rejection has its status, fields and body`(_ status: Int, _ code: [UInt8]) {
        let head = Array("HTTP/1.1 \(status) X\r\nA: b\r\nA: c\r\n\r\n".utf8)
        let response = CheckCallResponse(status: status, head: head.span, body: [1, 2]) { _ in .client }
        let fields = ["b", "c"].flatMap { Self.field(2, Self.field(1, Self.text(1, "a") + Self.text(2, $0))) }
        let number = [0x08, UInt8(status & 0x7F) | 0x80, UInt8(status >> 7)]
        let message = Self.field(1, code) + Self.field(2, Self.field(1, number) + fields + Self.field(3, [1, 2]))
        #expect(response.framed == Self.framed(message))
    }
}
