import MartletCore
import MartletHTTP
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct TrailerRuleTests {
    @Test(
        arguments: [
            ("X-Sum", true), ("x-sum-2", true), ("Checksum", true), ("grpc-status", true), ("A", true),
            ("X-HTTP-Method-Override", true), ("X-Original-Host-Name", true),
            // Removed by the route.
            ("X-Debug", false), ("x_debug", false),
            // Known fields, and names with their letters.
            ("Host", false), ("Content-Length", false), ("Transfer-Encoding", false), ("Trailer", false),
            ("Cookie", false), ("Date", false), ("Server", false), ("X-Request-Id", false), ("X-RequestId", false),
            ("Author-ization", false), ("X_Real_IP", false), ("Set_Cookie", false),
            // Identities, and names that only proxies may send.
            ("X-Auth-Subject", false), ("x_auth.any", false), ("X-Original-URL", false), ("Remote-User", false),
            ("X-Forwarded-User", false), ("X-A%41", false),
        ] as [(String, Bool)])
    func `a name is announced exactly where its trailer is forwarded`(_ name: String, _ expected: Bool) {
        let bench = UpstreamHeadBench(remove: ["x-debug"])
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: \(name)\r\n\r\n"
        let announced = bench.write(head).announced
        #expect(announced == (expected ? "\(name.lowercased())," : ""))
        let line = "\(name): 1\r\n"
        #expect(bench.forwarded(trailers: line) == (expected ? line : ""))
        #expect(bench.forwarded(trailers: line, announced: announced, announcedOnly: true) == (expected ? line : ""))
    }

    @Test func `announced trailers are forwarded in any case and order, as often as they come`() {
        let bench = UpstreamHeadBench()
        let lines = "X-SUM: 1\r\nX-Other: 2\r\nx-sum: 3\r\nY: 4\r\nX-Sum: 5\r\n"
        #expect(
            bench.forwarded(trailers: lines, announced: "y,x-sum,", announcedOnly: true)
                == "X-SUM: 1\r\nx-sum: 3\r\nY: 4\r\nX-Sum: 5\r\n")
        #expect(bench.forwarded(trailers: lines, announced: "y,x-sum,") == lines)
    }

    @Test func `lines after an invalid one are dropped`() {
        let bench = UpstreamHeadBench()
        #expect(bench.forwarded(trailers: "A: 1\r\nB : 2\r\nC: 3\r\n") == "A: 1\r\n")
        #expect(bench.forwarded(trailers: "A: 1\r\nB: 2\r") == "A: 1\r\n")
    }

    @Test func `only chunked requests announce trailers`() {
        let fields = "Host: a\r\nTrailer: X-Sum\r\n"
        for framing in ["", "Content-Length: 0\r\n", "Content-Length: 5\r\n"] {
            let outcome = UpstreamHeadBench().write("POST / HTTP/1.1\r\n\(fields)\(framing)\r\n")
            #expect(outcome.announced.isEmpty && outcome.fields("Trailer").isEmpty, "\(framing)")
        }
    }

    @Test func `rules belong to a route until the exchange ends`() {
        var rules = ExchangeHeaderRules()
        let atFirst = rules.route
        rules.begin(route: 7, rules: [.isTrusted, .hasRemovals])
        #expect(atFirst == -1 && rules.route == 7 && rules.rules == [.isTrusted, .hasRemovals])
        let (first, second) = (UpstreamHeadBench().snapshot, UpstreamHeadBench().snapshot)
        rules.retain(former: first)
        rules.retain(former: second)
        #expect(rules.formerSnapshot === first)
        rules.end()
        #expect(rules.route == -1 && rules.formerSnapshot == nil)
        rules.retain(former: second)
        #expect(rules.formerSnapshot === second)
    }

    @Test(
        arguments: [
            ("Remote-User", [], false), ("Remote-User", .isTrusted, true), ("X-Debug", [], true),
            ("X-Debug", .hasRemovals, false), ("X-Auth-Any", .isTrusted, false), ("Expect", .keepsExpect, false),
            ("Authorization", .keepsOwnTokens, false), ("Host", .keepsHost, false),
        ] as [(String, RequestFieldRules, Bool)])
    func `the rules of the head decide about a trailer, too, except for known fields`(
        _ name: String, _ rules: RequestFieldRules, _ expected: Bool
    ) throws {
        let bench = UpstreamHeadBench(remove: ["x-debug"])
        var line = ByteBuffer()
        line.append(text: "\(name): 100-continue\r\n")
        var offset = 0
        let found = unsafe TrailerLines.next(line.bytes.span, from: &offset)
        let field = try #require(found)
        let passes = unsafe rules.passesAsTrailer(field, line.bytes, bench.snapshot, bench.route)
        #expect(passes == expected)
    }
}
