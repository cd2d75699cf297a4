import MartletCore
import MartletHTTP
import Testing

@Suite struct RequestParserTests {
    @Test(arguments: RequestCases.all)
    func `accepts unambiguous messages and rejects others`(_ message: MessageCase) {
        #expect(parseRequest(message.bytes) == message.expected)
    }

    @Test(arguments: RequestCases.all)
    func `has the same result wherever the bytes are split`(_ message: MessageCase) {
        let stride = max(1, message.bytes.count / 400)
        for cut in Swift.stride(from: 0, to: message.bytes.count, by: stride) {
            let outcome = parseRequest(message.bytes, cuts: [cut])
            if outcome != message.expected { Issue.record("cut at \(cut): \(outcome)") }
        }
        #expect(parseRequest(message.bytes, cuts: Array(0..<message.bytes.count)) == message.expected)
    }

    @Test func `fails a head as soon as it is over the limit`() {
        var parser = RequestParser(maximumHeadBytes: 64)
        var head = RequestHead(maximumFields: 10)
        let bytes = Array("GET / HTTP/1.1\r\nX: \(String(repeating: "y", count: 64))".utf8)
        for count in 0..<64 { #expect(parser.parse(bytes.span.extracting(first: count), into: &head) == .needMore) }
        #expect(parser.parse(bytes.span.extracting(first: 64), into: &head) == .failure(.headTooLarge))
    }

    @Test func `accepts a head of exactly the limit`() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(parseRequest(Array(text.utf8), maximumHeadBytes: text.utf8.count) == "GET path=/ host=a none")
        #expect(parseRequest(Array(text.utf8), maximumHeadBytes: text.utf8.count - 1) == "request.head_too_large")
    }

    @Test func `immediately rejects bytes that cannot be HTTP`() {
        #expect(parseRequest([0x16, 3, 1]) == "request.bad_request_line")
    }

    @Test func `parses one head after the other into the same memory`() {
        var parser = RequestParser(maximumHeadBytes: 1024)
        var head = RequestHead(maximumFields: 10)
        let first = Array(
            "POST http://a/x?y HTTP/1.0\r\nHost: a\r\nAuthorization: z\r\nContent-Length: 1\r\nTrailer: x\r\n\r\n".utf8)
        let second = Array("GET / HTTP/1.1\r\nHost: b\r\n\r\n".utf8)
        #expect(parser.parse(first.span, into: &head) == .complete(first.count))
        #expect(parser.parse(second.span, into: &head) == .complete(second.count))
        #expect(describe(.complete(second.count), head, second) == "GET path=/ host=b none")
        #expect(head.fields.count == 1)
    }

    @Test func `returns the ranges of every field`() {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\nX_Auth.User: \tjo \r\nX-Empty:\r\nX-Text: é\r\n\r\n".utf8)
        var parser = RequestParser(maximumHeadBytes: 1024)
        var head = RequestHead(maximumFields: 10)
        #expect(parser.parse(bytes.span, into: &head) == .complete(bytes.count))
        #expect(head.fields.count == 4)
        #expect(slice(bytes, head.fields[1].name) == "X_Auth.User")
        #expect(slice(bytes, head.fields[1].value) == "jo")
        #expect(slice(bytes, head.fields[1].line) == "X_Auth.User: \tjo \r\n")
        #expect(head.fields[2].value.isEmpty)
        #expect(slice(bytes, head.fields[2].line) == "X-Empty:\r\n")
        #expect(!head.fields[2].hasObsText)
        #expect(head.fields[3].hasObsText)
    }

    @Test func `marks the fields that Connection names, but no framing and no Host`() {
        let text = """
            GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nConnection: x-A, host, content-length\r
            Content-Length: 3\r\nx-a: 2\r
            X-AB: 3\r\nConnection: Keep-Alive\r\nKeep-Alive: 5\r\n\r\n
            """
        let bytes = Array(text.utf8)
        var parser = RequestParser(maximumHeadBytes: 1024)
        var head = RequestHead(maximumFields: 10)
        #expect(parser.parse(bytes.span, into: &head) == .complete(bytes.count))
        var marked: [String] = []
        for index in 0..<head.fields.count where head.fields[index].isConnectionOption {
            marked.append(slice(bytes, head.fields[index].line))
        }
        #expect(marked == ["X-A: 1\r\n", "x-a: 2\r\n"])
    }

    @Test(arguments: KnownField.allCases.filter { $0 != .other && $0.name.utf8CodeUnitCount > 0 })
    func `knows a field in any case and its alias only as one`(_ field: KnownField) {
        let name = field.name.description
        #expect(known(name).known == field)
        #expect(known(name.uppercased()).known == field)
        #expect(known(name + "x").known == .other)
        #expect(known("x" + name).known == .other)
        if name.contains("-") {
            let alias = known(name.replacing("-", with: "_"))
            #expect(alias.known == .other)
            #expect(alias.alias == field)
            #expect(known(name.replacing("-", with: ".")).alias == field)
            #expect(alias.isInSet && known(name.uppercased()).isInSet)
        }
    }

    @Test(arguments: KnownField.allCases.filter { $0 != .other })
    func `knows no field by a part of its name, or in a name that no field may have`(_ field: KnownField) {
        let name = Array(field.name.description.utf8)
        var wrong: [[UInt8]] = []
        for byte in UInt8.min...UInt8.max where byte != UInt8(ascii: ":") {
            for rest in [[byte], [byte, 0x65], [0x65, byte], [byte, byte, 0x6E]] { wrong.append(name + rest) }
            for index in name.indices where byte | 0x20 != name[index] {
                var changed = name
                changed[index] = byte
                wrong.append(changed)
            }
        }
        for name in wrong {
            let bytes = Array("HTTP/1.1 200 OK\r\n".utf8) + name + Array(": 1\r\nMore: of it\r\n\r\n".utf8)
            var parser = ResponseParser(maximumHeadBytes: 1024)
            var head = ResponseHead(maximumFields: 10)
            let outcome = parser.parse(bytes.span, requestMethod: .get, into: &head)
            var offset = 17
            let line = TrailerLines.next(bytes.span, from: &offset)
            if case .complete = outcome {
                if line?.known != head.fields[0].known { Issue.record("\(name) is taken for \(head.fields[0].known)") }
            } else if line != nil, line?.known == .other {
                Issue.record("\(name) is refused")
            }
        }
    }

    /// What a response parser makes of a field's name, and whether a set with that name finds it; it accepts the
    /// aliases that requests may not have.
    private func known(_ name: String) -> (known: KnownField, alias: KnownField, isInSet: Bool) {
        let value = name.lowercased() == "transfer-encoding" ? "chunked" : "1"
        let bytes = Array("HTTP/1.1 200 OK\r\n\(name): \(value)\r\n\r\n".utf8)
        var parser = ResponseParser(maximumHeadBytes: 1024)
        var head = ResponseHead(maximumFields: 10)
        guard case .complete = parser.parse(bytes.span, requestMethod: .get, into: &head) else {
            return (.other, .other, false)
        }
        let field = head.fields[0]
        let set = FieldNameSet([name.lowercased()], reservesAuthPrefix: false)
        return (field.known, field.alias, set.contains(field, in: bytes.span))
    }

    @Test func `names every failure once and blames the right side`() {
        let codes = HeadError.allCases.map(\.code.rawValue)
        #expect(Set(codes).count == codes.count)
        for failure in HeadError.allCases {
            #expect(failure.code.rawValue.hasPrefix(failure.rawValue < 64 ? "request." : "upstream."))
            #expect(failure.upstream.code.rawValue.hasPrefix("upstream."))
        }
        #expect(HeadError.headTooLarge.status == 431)
        #expect(HeadError.tooManyFields.status == 431)
        #expect(HeadError.uriTooLong.status == 414)
        #expect(HeadError.bareLF.status == 400)
        #expect(HeadError.upstreamHeadTooLarge.status == 502)
    }
}
