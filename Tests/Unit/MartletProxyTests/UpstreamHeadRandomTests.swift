import MartletHTTP
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Requests with any combination of fields, and what must hold for each head that an upstream gets.
@Suite struct UpstreamHeadRandomTests {
    /// A request, as it was put together.
    private struct Request {
        var lines: [String]
        var hasBody: Bool

        var text: String { "GET /a?b=c HTTP/1.1\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n" }

        func has(_ line: String) -> Bool { lines.contains(line) }
    }

    /// Fields that only the gateway or a proxy may send; each has `eve` in its value.
    private static let hostile = [
        "X-Auth-Subject: eve", "x_auth.email: eve", "XAuth-Roles: eve", "X-Auth-Assertion: eve", "X-Request-Id: eve",
        "X_Request_Id: eve", "X-Forwarded-For: eve", "X-Forwarded-Proto: eve", "X-Forwarded-Host: eve",
        "X-Forwarded-User: eve", "Forwarded: for=eve", "X-Real-IP: eve", "Remote-User: eve", "V-ia: 1.0 eve",
        "X-Original-URL: /eve", "Author-ization: eve", "X-A%41: eve", "Proxy-Authorization: eve",
    ]
    /// Fields that every upstream gets, in the client's order.
    private static let plain = [
        "Accept: x", "Cookie: a=b", "X-Own: 1", "User-Agent:  y ", "X-RequestId: 2", "Authorization: Bearer t", "A: ",
    ]
    private static let connection = [
        "TE: trailers", "Keep-Alive: 5", "Upgrade: h2c", "Proxy-Connection: x", "HTTP2-Settings: x", "Trailer: X-Sum",
        "Expect: 100-continue",
    ]

    /// The gateway's own fields, and how their lines begin.
    private static let gateway = [
        "Via: 1.1 \(UpstreamHeadBench.pseudonym)", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: http",
        "X-Forwarded-Host: a",
        "X-Request-Id: 0123", "X-Auth-Subject: ada",
    ]
    private static let names = [
        "Via:", "X-Forwarded-For:", "X-Forwarded-Proto:", "X-Forwarded-Host:", "X-Request-Id:", "X-Auth-Subject:",
    ]
    private static let node = "Forwarded: for=192.0.2.1;proto=http;host=\"a\""

    private func request(_ random: inout SeededGenerator) -> Request {
        var lines: [String] = []
        for pool in [Self.hostile, Self.plain, Self.connection] {
            lines += pool.shuffled(using: &random).prefix(Int.random(in: 0...6, using: &random))
        }
        let framing = ["", "", "Content-Length: 5", "Transfer-Encoding: chunked"].randomElement(using: &random) ?? ""
        if !framing.isEmpty { lines.append(framing) }
        if Bool.random(using: &random) { lines.append("Connection: x-own, A") }
        lines.append("Host: a")
        return Request(lines: lines.shuffled(using: &random), hasBody: !framing.isEmpty)
    }

    /// The head parsed as its upstream does; what it says, in words.
    private func parsed(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var parser = RequestParser(maximumHeadBytes: 16_384)
        var head = RequestHead(maximumFields: 100)
        let outcome = parser.parse(bytes.span, into: &head)
        guard outcome == .complete(bytes.count) else { return "\(outcome)" }
        let target = String(decoding: bytes[head.target.bounds], as: UTF8.self)
        let host = String(decoding: bytes[head.authority.bounds], as: UTF8.self)
        return "\(head.method) \(target) \(host) \(head.framing) \(head.keepsAlive) \(head.expectsContinue)"
    }

    private func framing(of request: Request) -> String {
        if request.has("Content-Length: 5") { return "length(5)" }
        return request.has("Transfer-Encoding: chunked") ? "chunked" : "none"
    }

    @Test(arguments: UInt64(1)...4)
    func `every head is valid and says what the client's said, without what only the gateway may say`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bench = UpstreamHeadBench()
        bench.identity = "X-Auth-Subject: ada\r\n"
        for number in 0..<150 {
            let request = request(&random)
            let outcome = bench.write(request.text)
            let expects = request.hasBody && request.has("Expect: 100-continue")
            #expect(parsed(outcome.text) == "get /a?b=c a \(framing(of: request)) true \(expects)", "\(request)")
            #expect(!outcome.text.contains("eve"), "\(request)")
            let own = outcome.lines.filter { line in Self.names.contains { line.hasPrefix($0) } }
            let forwarded = request.has("Forwarded: for=eve") ? [Self.node] : []
            #expect(own == Self.gateway && outcome.fields("Forwarded") == forwarded, "run \(number)")
            #expect(outcome.text.hasSuffix("X-Request-Id: 0123\r\nX-Auth-Subject: ada\r\n\r\n"))
        }
    }

    @Test(arguments: UInt64(5)...8)
    func `every other field passes in the client's order, unless Connection names it`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let bench = UpstreamHeadBench()
        for number in 0..<150 {
            let request = request(&random)
            let options = request.has("Connection: x-own, A") ? ["X-Own: 1", "A: "] : []
            let expected = request.lines.filter { Self.plain.contains($0) && !options.contains($0) }
            let found = bench.write(request.text).lines.filter { Self.plain.contains($0) }
            #expect(found == expected, "run \(number)")
        }
    }

    @Test(arguments: UInt64(9)...10)
    func `a trusted proxy's fields pass, but none that names an identity`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bench = UpstreamHeadBench()
        bench.isTrusted = true
        let ofProxies: Set = [
            "X-Forwarded-Proto: eve", "X-Forwarded-Host: eve", "X-Forwarded-User: eve", "X-Real-IP: eve",
            "Remote-User: eve", "X-Original-URL: /eve",
        ]
        for number in 0..<150 {
            let request = request(&random)
            let outcome = bench.write(request.text)
            let isForwarded = request.has("Forwarded: for=eve")
            // A node without an address is unknown there.
            let before = request.has("X-Forwarded-For: eve") ? "eve, " : isForwarded ? "unknown, " : ""
            let chain = "\(before)192.0.2.1"
            #expect(outcome.fields("X-Forwarded-For") == ["X-Forwarded-For: \(chain)"], "run \(number)")
            let extended = isForwarded ? ["Forwarded: for=eve, for=192.0.2.1;proto=http;host=\"a\""] : []
            #expect(outcome.fields("Forwarded") == extended, "run \(number)")
            let found = outcome.lines.filter { line in
                line.contains("eve") && !["X-Forwarded-For:", "Forwarded:"].contains { line.hasPrefix($0) }
            }
            #expect(found == request.lines.filter { ofProxies.contains($0) }, "run \(number)")
            #expect(outcome.fields("X-Forwarded-Proto").count == 1 && outcome.fields("X-Forwarded-Host").count == 1)
        }
    }
}
