import MartletCore
import MartletHTTP
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct RequestBodyLimitTests {
    /// What happens to a body of a known length: so many bytes are received, or spliced to the upstream.
    enum Step: Sendable {
        case receive(Int)
        case splice(Int)
    }

    private func body(_ framing: BodyFraming) -> RequestBody {
        var body = RequestBody()
        body.framing = framing
        body.expect()
        return body
    }

    /// The next element, in words.
    private func next(_ body: inout RequestBody, _ bytes: [UInt8], _ offset: inout Int, isStream: Bool) -> String {
        switch body.next(bytes.span, from: &offset, isStream: isStream, mayHaveTrailers: false) {
        case .data(let range): "data \(range.count)"
        case .trailer: "trailer"
        case .end: "end"
        case .needMore: "more"
        case .tooLarge: "too large"
        case .malformed(let failure): failure.code.rawValue
        }
    }

    /// All elements of a text that arrives in one read, up to one after which nothing more is read.
    private func elements(_ body: inout RequestBody, _ text: String, isStream: Bool = false) -> [String] {
        let bytes = Array(text.utf8)
        var offset = 0
        var found: [String] = []
        repeat {
            found.append(next(&body, bytes, &offset, isStream: isStream))
        } while found.last?.hasPrefix("data") == true || found.last == "trailer"
        return found
    }

    @Test(
        arguments: [
            (.length(0), 0, true), (.length(1), 0, false), (.length(1), 1, true), (.length(2), 1, false),
            (.length(Int.max), Int.max, true), (.length(Int.max), Int.max - 1, false), (.chunked, 0, true),
            (BodyFraming.none, 0, true), (.untilClose, 0, true),
        ] as [(BodyFraming, Int, Bool)])
    func `a length is compared with the limit before any of it is received`(
        _ framing: BodyFraming, _ limit: Int, _ expected: Bool
    ) {
        var body = body(framing)
        let isWithin = body.restrict(to: limit)
        #expect(isWithin == expected && body.count == 0 && !body.isComplete)
    }

    @Test func `a length of an earlier body does not count`() {
        var body = body(.length(9))
        body.begin()
        body.framing = .chunked
        body.expect()
        let isWithin = body.restrict(to: 0)
        #expect(isWithin && body.remaining == 0)
    }

    @Test func `the pieces of a stream count together, and the one that exceeds the limit is not consumed`() {
        var body = body(.chunked)
        let isWithin = body.restrict(to: 3)
        #expect(isWithin)
        #expect(elements(&body, "ab", isStream: true) == ["data 2", "more"])
        #expect(elements(&body, "c", isStream: true) == ["data 1", "more"])
        #expect(elements(&body, "", isStream: true) == ["more"])
        #expect(body.count == 3 && !body.isComplete)
        var offset = 1
        let outcome = next(&body, Array("xd".utf8), &offset, isStream: true)
        #expect(outcome == "too large" && offset == 1 && body.count == 4 && !body.isComplete)
    }

    @Test(arguments: [
        (4, ["data 2", "data 1", "data 1", "end"], 4), (3, ["data 2", "data 1", "too large"], 4),
        (2, ["data 2", "too large"], 3), (1, ["too large"], 2), (0, ["too large"], 2),
    ])
    func `chunks count together, without their sizes`(_ limit: Int, _ expected: [String], _ count: Int) {
        var body = body(.chunked)
        let isWithin = body.restrict(to: limit)
        #expect(isWithin)
        #expect(elements(&body, "2;x=y\r\nab\r\n1\r\nc\r\n01\r\nd\r\n0\r\n\r\n") == expected)
        #expect(body.count == count && body.isComplete == (expected.last == "end"))
    }

    @Test func `a limit does not count trailers`() {
        var body = body(.chunked)
        let isWithin = body.restrict(to: 1)
        #expect(isWithin)
        let found = elements(&body, "1\r\na\r\n0\r\nX: 12345\r\nY: 67890\r\n\r\n")
        #expect(found == ["data 1", "trailer", "trailer", "end"])
        #expect(body.count == 1 && body.isComplete)
    }

    @Test func `a body that stopped within a chunk leaves nothing for the next one`() {
        var body = body(.chunked)
        #expect(elements(&body, "5\r\nab") == ["data 2", "more"])
        body.begin()
        body.framing = .chunked
        body.expect()
        #expect(elements(&body, "1\r\nx\r\n0\r\n\r\n") == ["data 1", "end"])
        #expect(body.count == 1 && body.isComplete)
    }

    @Test func `an invalid chunk after valid ones is found where it is`() {
        var body = body(.chunked)
        #expect(elements(&body, "1\r\na\r\nx\r\n") == ["data 1", "request.bad_chunk"])
        #expect(body.count == 1 && !body.isComplete)
    }

    @Test(
        arguments: [
            (
                [.receive(4), .splice(5), .receive(3), .receive(3)],
                ["data 4 of 4, 6 left", "1 left", "data 1 of 3, 0 left, complete", "end 0 of 3, 0 left, complete"]
            ),
            ([.splice(10), .receive(1)], ["0 left, complete", "end 0 of 1, 0 left, complete"]),
            ([.receive(10), .splice(0)], ["data 10 of 10, 0 left, complete", "0 left, complete"]),
            (
                [.receive(0), .splice(9), .receive(0), .receive(1)],
                ["more 0 of 0, 10 left", "1 left", "more 0 of 0, 1 left", "data 1 of 1, 0 left, complete"]
            ),
            (
                [.splice(1), .splice(1), .receive(7), .splice(1), .receive(0)],
                ["9 left", "8 left", "data 7 of 7, 1 left", "0 left, complete", "end 0 of 0, 0 left, complete"]
            ),
        ] as [([Step], [String])])
    func `bytes that are received and bytes that are spliced complete a length together`(
        _ steps: [Step], _ expected: [String]
    ) {
        var body = body(.length(10))
        var found: [String] = []
        for step in steps { found.append(perform(step, on: &body)) }
        #expect(found == expected)
        #expect(body.count == 10)
    }

    private func perform(_ step: Step, on body: inout RequestBody) -> String {
        var text = ""
        switch step {
        case .receive(let count):
            var offset = 0
            let name = next(&body, [UInt8](repeating: 0x61, count: count), &offset, isStream: false)
            text = name.hasPrefix("data") ? "\(name) of \(count), " : "\(name) \(offset) of \(count), "
        case .splice(let count): body.skip(count)
        }
        return "\(text)\(body.remaining) left" + (body.isComplete ? ", complete" : "")
    }

    @Test func `a stream that may have trailers is complete only with its last frame`() {
        var body = body(.length(2))
        let bytes: [UInt8] = [1, 2]
        var offset = 0
        let event = body.next(bytes.span, from: &offset, isStream: true, mayHaveTrailers: true)
        guard case .data(let range) = event else {
            Issue.record("no data")
            return
        }
        #expect(range.count == 2 && body.remaining == 0 && !body.isComplete)
        let rest = body.next(bytes.span, from: &offset, isStream: true, mayHaveTrailers: true)
        guard case .needMore = rest else {
            Issue.record("the end came before the last frame")
            return
        }
        #expect(!body.isComplete)
    }
}
