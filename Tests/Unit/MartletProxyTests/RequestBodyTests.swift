import MartletCore
import MartletHTTP
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// A body as it is received, and what comes of it.
struct BodyCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let framing: BodyFraming
    let bytes: [UInt8]
    let expected: String
    let isStream: Bool
    let mayHaveTrailers: Bool
    let limit: Int

    init(
        _ name: String, _ framing: BodyFraming, _ text: String, _ expected: String, isStream: Bool = false,
        mayHaveTrailers: Bool = false, limit: Int = .max
    ) {
        testDescription = name
        self.framing = framing
        bytes = Array(text.utf8)
        self.expected = expected
        self.isStream = isStream
        self.mayHaveTrailers = mayHaveTrailers
        self.limit = limit
    }

    /// The events as a line of text.
    ///
    /// The bytes arrive in pieces that end at `cuts`; between calls only unread bytes are buffered, as a connection
    /// does.
    func received(cuts: [Int] = []) -> String {
        var body = RequestBody()
        body.framing = framing
        body.expect()
        guard body.restrict(to: limit) else { return "over the limit" }
        var waiting: [UInt8] = []
        var data: [UInt8] = []
        var trailers = ""
        var fed = 0
        for cut in cuts + [bytes.count] {
            waiting += bytes[fed..<cut]
            fed = cut
            var offset = 0
            reading: while true {
                switch body.next(waiting.span, from: &offset, isStream: isStream, mayHaveTrailers: mayHaveTrailers) {
                case .data(let range):
                    if range.isEmpty { return "an empty piece" }
                    data += waiting[range.bounds]
                    if body.count != data.count { return "counted \(body.count) of \(data.count)" }
                case .trailer(let field):
                    trailers += " \(Self.text(waiting, field.name))=\(Self.text(waiting, field.value))"
                case .needMore: break reading
                case .tooLarge: return "too large"
                case .malformed(let failure): return failure.code.rawValue
                case .end:
                    if !body.isComplete { return "ended incomplete" }
                    let rest = waiting.count - offset + bytes.count - fed
                    return Self.line(data, trailers + " end", rest: rest)
                }
            }
            waiting.removeFirst(offset)
        }
        return Self.line(data, trailers + (body.isComplete ? " complete" : " more"), rest: waiting.count)
    }

    private static func line(_ data: [UInt8], _ text: String, rest: Int) -> String {
        "'\(String(decoding: data, as: UTF8.self))'\(text)" + (rest == 0 ? "" : " rest=\(rest)")
    }

    private static func text(_ bytes: [UInt8], _ range: ByteRange) -> String {
        String(decoding: bytes[range.bounds], as: UTF8.self)
    }
}

@Suite struct RequestBodyTests {
    static let lengths = [
        BodyCase("a length", .length(3), "abc", "'abc' end"),
        BodyCase("a part of a length", .length(4), "abc", "'abc' more"),
        BodyCase("nothing of a length", .length(1), "", "'' more"),
        BodyCase("the next request behind a length", .length(3), "abcGET /", "'abc' end rest=5"),
        BodyCase("a length of nothing", .length(0), "GET", "'' end rest=3"),
        BodyCase("a length at the limit", .length(3), "abc", "'abc' end", limit: 3),
        BodyCase("a length over the limit", .length(4), "abcd", "over the limit", limit: 3),
        BodyCase("a length on a stream", .length(3), "abc", "'abc' end", isStream: true),
        BodyCase(
            "a length on a stream that may have trailers", .length(3), "abc", "'abc' more", isStream: true,
            mayHaveTrailers: true),
        BodyCase(
            "a length on a stream that has more", .length(3), "abcd", "'abc' more rest=1", isStream: true,
            mayHaveTrailers: true),
    ]

    static let chunks = [
        BodyCase("chunks", .chunked, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "'abcde' end"),
        BodyCase("no chunk", .chunked, "0\r\n\r\n", "'' end"),
        BodyCase("the next request behind chunks", .chunked, "1\r\na\r\n0\r\n\r\nGET /", "'a' end rest=5"),
        BodyCase("trailers", .chunked, "1\r\na\r\n0\r\nX: 1\r\nY: 2\r\n\r\nG", "'a' X=1 Y=2 end rest=1"),
        BodyCase("nothing of a chunk", .chunked, "", "'' more"),
        BodyCase("a part of a size", .chunked, "1\r\na\r\n1", "'a' more rest=1"),
        BodyCase("a part of the last line", .chunked, "0\r\n", "'' more"),
        BodyCase("no size", .chunked, "x", "request.bad_chunk"),
        BodyCase("a chunk that is too long", .chunked, "1\r\nab\r\n", "request.bad_chunk"),
        BodyCase("a bad trailer", .chunked, "0\r\nX\r\n\r\n", "request.bad_trailer"),
        BodyCase("chunks at the limit", .chunked, "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "'abc' end", limit: 3),
        BodyCase("chunks over the limit", .chunked, "2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n", "too large", limit: 3),
        BodyCase("one chunk over the limit", .chunked, "4\r\nabcd\r\n0\r\n\r\n", "too large", limit: 3),
        BodyCase("no chunk at a limit of nothing", .chunked, "0\r\n\r\n", "'' end", limit: 0),
        BodyCase("a byte over a limit of nothing", .chunked, "1\r\na\r\n0\r\n\r\n", "too large", limit: 0),
    ]

    static let frames = [
        BodyCase("frames", .chunked, "abc", "'abc' more", isStream: true),
        BodyCase("frames that look like chunks", .chunked, "0\r\n\r\n", "'0\r\n\r\n' more", isStream: true),
        BodyCase("no frames", .chunked, "", "'' more", isStream: true),
        BodyCase("frames at the limit", .chunked, "abc", "'abc' more", isStream: true, limit: 3),
        BodyCase("frames over the limit", .chunked, "abcd", "too large", isStream: true, limit: 3),
        BodyCase(
            "frames that may have trailers", .chunked, "abc", "'abc' more", isStream: true, mayHaveTrailers: true),
    ]

    static let others = [
        BodyCase("no body", .none, "GET", "'' more rest=3"),
        BodyCase("a framing of responses", .untilClose, "abc", "'' more rest=3"),
    ]

    @Test(arguments: lengths + chunks + frames + others)
    func `has these elements`(_ body: BodyCase) { #expect(body.received() == body.expected) }

    @Test(arguments: lengths + chunks + frames + others)
    func `has the same elements wherever the bytes are split`(_ body: BodyCase) {
        for cut in 0..<max(body.bytes.count, 1) {
            let outcome = body.received(cuts: [cut])
            if outcome != body.expected { Issue.record("cut at \(cut): \(outcome)") }
        }
        #expect(body.received(cuts: Array(0..<body.bytes.count)) == body.expected)
        #expect(body.received(cuts: (0..<body.bytes.count).flatMap { [$0, $0] }) == body.expected)
    }

    @Test func `any chunking has the content of its length, however it is split`() {
        var random = SeededGenerator(seed: 23)
        for _ in 0..<200 {
            var content = ""
            var chunks = ""
            for _ in 0..<Int.random(in: 0...6, using: &random) {
                let part = String(
                    (0..<Int.random(in: 1...30, using: &random)).map { _ in "0a;: \t".randomElement(using: &random)! })
                content += part
                chunks += "\(String(part.utf8.count, radix: 16))\r\n\(part)\r\n"
            }
            let limit = content.utf8.count
            let cases = [
                BodyCase("", .chunked, chunks + "0\r\n\r\nGET", "'\(content)' end rest=3", limit: limit),
                BodyCase("", .length(limit), content + "GET", "'\(content)' end rest=3", limit: limit),
                BodyCase("", .chunked, content, "'\(content)' more", isStream: true, limit: limit),
            ]
            for one in cases {
                let cuts = (0..<3).map { _ in Int.random(in: 0...one.bytes.count, using: &random) }.sorted()
                #expect(one.received(cuts: cuts) == one.expected)
            }
            guard limit > 0 else { continue }
            let short = BodyCase("", .chunked, chunks + "0\r\n\r\n", "too large", limit: limit - 1)
            let cuts = (0..<3).map { _ in Int.random(in: 0...short.bytes.count, using: &random) }.sorted()
            #expect(short.received(cuts: cuts) == "too large")
        }
    }

    @Test func `a length is complete with its last byte, before its end is read`() {
        var body = RequestBody()
        body.framing = .length(3)
        body.expect()
        let bytes: [UInt8] = [1, 2, 3]
        var offset = 0
        let event = body.next(bytes.span, from: &offset, isStream: false, mayHaveTrailers: false)
        guard case .data(let range) = event else {
            Issue.record("no data")
            return
        }
        #expect(range == ByteRange(from: 0, to: 3) && offset == 3)
        #expect(body.isComplete && body.remaining == 0 && body.count == 3)
    }

    @Test func `reading starts at the offset`() {
        var body = RequestBody()
        body.framing = .chunked
        body.expect()
        let bytes: [UInt8] = [1, 2, 3]
        var offset = 1
        let event = body.next(bytes.span, from: &offset, isStream: true, mayHaveTrailers: false)
        guard case .data(let range) = event else {
            Issue.record("no data")
            return
        }
        #expect(range == ByteRange(from: 1, to: 3) && offset == 3 && body.count == 2)
    }

    @Test func `spliced bytes count, and the last of them complete the body`() {
        var body = RequestBody()
        body.framing = .length(10)
        body.expect()
        body.skip(4)
        #expect(!body.isComplete && body.remaining == 6 && body.count == 4)
        body.skip(0)
        #expect(!body.isComplete && body.remaining == 6 && body.count == 4)
        body.skip(6)
        #expect(body.isComplete && body.remaining == 0 && body.count == 10)
    }

    @Test func `nothing remains of an earlier body`() {
        var body = RequestBody()
        body.framing = .length(10)
        body.expect()
        let isWithin = body.restrict(to: 10)
        body.skip(10)
        body.begin()
        #expect(isWithin && !body.isComplete && body.remaining == 0 && body.count == 0)
        body.framing = .chunked
        body.expect()
        let bytes = Array("b\r\n01234567890\r\n".utf8)
        var offset = 0
        let event = body.next(bytes.span, from: &offset, isStream: false, mayHaveTrailers: false)
        guard case .data(let range) = event else {
            Issue.record("the limit of an earlier body counts")
            return
        }
        #expect(range.count == 11 && body.count == 11)
    }
}
