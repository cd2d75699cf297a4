import MartletCore
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct RequestTrailersTests {
    @Test(arguments: [
        ("X-Sum", "Trailer: X-Sum", "x-sum,"),
        ("X-Sum, y ,\tZ", "Trailer: X-Sum, y, Z", "x-sum,y,z,"),
        ("X-Sum,,X-Other,", "Trailer: X-Sum, X-Other", "x-sum,x-other,"),
        ("X-Sum\r\nTrailer: X-Other", "Trailer: X-Sum, X-Other", "x-sum,x-other,"),
        ("X-Auth-Subject, X-Sum", "Trailer: X-Sum", "x-sum,"),
        ("Host, Content-Length, Authorization, Author-ization", nil, ""),
        ("X-Real-IP, x_forwarded_user, X-Debug, X-A%41", nil, ""),
        ("", nil, ""),
        ("X: y", nil, ""),
    ])
    func `announces the trailers that will be forwarded`(_ list: String, _ line: String?, _ announced: String) {
        let outcome = UpstreamHeadBench(remove: ["x-debug"]).write(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: \(list)\r\n\r\n")
        #expect(outcome.fields("Trailer") == (line.map { [$0] } ?? []))
        #expect(outcome.announced == announced)
    }

    @Test(arguments: [
        ("X-Sum: 1\r\n", "X-Sum: 1\r\n"), ("X-Sum:  1 \r\nY:\r\n", "X-Sum: 1\r\nY: \r\n"),
        ("X-Auth-Subject: eve\r\nX-Sum: 1\r\n", "X-Sum: 1\r\n"), ("x_auth.any: eve\r\n", ""),
        ("Host: b\r\n", ""), ("Ho_st: b\r\n", ""), ("Content-Length: 5\r\n", ""), ("Cookie: a=b\r\n", ""),
        ("Coo-kie: a=b\r\n", ""), ("Authorization: Bearer t\r\n", ""), ("X_Request_Id: 1\r\n", ""),
        ("X-Real-IP: 198.51.100.9\r\n", ""), ("X-Debug: 1\r\nx_debug: 1\r\n", ""), ("X-A%41: 1\r\n", ""), ("", ""),
    ])
    func `a trailer is forwarded where the same field of a head is, unless it is a known one`(
        _ lines: String, _ expected: String
    ) {
        #expect(UpstreamHeadBench(remove: ["x-debug"]).forwarded(trailers: lines) == expected)
    }

    @Test func `a trusted proxy may send more`() {
        var bench = UpstreamHeadBench()
        bench.isTrusted = true
        #expect(bench.forwarded(trailers: "True-Client-IP: 1\r\n") == "True-Client-IP: 1\r\n")
        #expect(bench.forwarded(trailers: "X-Auth-Subject: eve\r\n").isEmpty)
    }

    @Test(arguments: [
        ("x-sum,", true), ("a,x-sum,b,", true), ("x-sums,x-su,", false), ("", false), ("xsum,", false),
    ])
    func `HTTP/1 gets announced trailers only`(_ announced: String, _ expected: Bool) {
        let bench = UpstreamHeadBench()
        let line = "X-Sum: 1\r\n"
        let forwarded = bench.forwarded(trailers: line, announced: announced, announcedOnly: true)
        #expect(forwarded == (expected ? line : ""))
        #expect(bench.forwarded(trailers: line, announced: announced) == line)
    }

    @Test func `a reload does not change the rules of an exchange`() {
        let (former, current) = (UpstreamHeadBench(remove: ["x-sum"]), UpstreamHeadBench())
        var rules = ExchangeHeaderRules()
        rules.begin(route: 0, rules: former.snapshot.compiledRoutes[0].rewriting)
        rules.retain(former: former.snapshot)
        // The configuration that the exchange began with stays, whatever comes later.
        rules.retain(former: current.snapshot)
        #expect(collected(rules, current).isEmpty)
        rules.end()
        rules.begin(route: 0, rules: current.snapshot.compiledRoutes[0].rewriting)
        #expect(collected(rules, current) == "X-Sum: 1\r\n")
    }

    @Test func `an exchange that forwarded no head takes no trailers, whatever its slot forwarded before`() {
        let bench = UpstreamHeadBench(remove: ["x-debug"])
        let fresh = ExchangeHeaderRules()
        #expect(collected(fresh, bench).isEmpty)
        // A route that the next configuration does not have.
        var rules = ExchangeHeaderRules()
        rules.begin(route: 9, rules: .hasRemovals)
        rules.end()
        #expect(collected(rules, bench).isEmpty)
    }

    private func collected(_ rules: ExchangeHeaderRules, _ bench: UpstreamHeadBench) -> String {
        var trailers = RequestTrailers()
        let bytes = Array("X-Sum: 1\r\n".utf8)
        unsafe bytes.withUnsafeBufferPointer {
            unsafe trailers.collect(lines: $0, rules, bench.snapshot, announcedOnly: false)
        }
        return String(decoding: trailers.forwarded.array, as: UTF8.self)
    }

    @Test func `begins empty`() {
        var trailers = RequestTrailers()
        trailers.announced.append("a")
        trailers.forwarded.append("b")
        trailers.received.append("c")
        trailers.begin()
        let isEmpty = trailers.announced.isEmpty && trailers.forwarded.isEmpty && trailers.received.isEmpty
        #expect(isEmpty)
    }
}
