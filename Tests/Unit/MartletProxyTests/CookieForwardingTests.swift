import MartletBrowser
import MartletDecisionsTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy
@testable import MartletResponder

/// Cookies in the heads that upstreams and clients get.
@Suite struct CookieForwardingTests {
    private func fields(_ lines: String, hasCookie: Bool = true, remove: [String] = []) -> [String] {
        var bench = UpstreamHeadBench(remove: remove, browser: .sample)
        bench.hasCookie = hasCookie
        let text = "GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\n\(lines)\r\nB: 2\r\n\r\n"
        return bench.write(text).lines.filter { $0.lowercased().hasPrefix("cookie") || $0.count == 4 }
    }

    @Test(arguments: [
        ("Cookie: a=1; __Host-martlet=x; b=2", ["A: 1", "Cookie: a=1; b=2", "B: 2"]),
        ("cookie:__Host-martlet=x; b=2", ["A: 1", "cookie:b=2", "B: 2"]),
        ("Cookie: __Host-martlet=x", ["A: 1", "B: 2"]),
        ("Cookie: __Host-martlet=x; __Host-martlet-start=y; __Host-martlet-form=z", ["A: 1", "B: 2"]),
        ("Cookie: c=3\r\nCookie: __Host-martlet=x;d=4", ["A: 1", "Cookie: c=3", "Cookie: d=4", "B: 2"]),
    ])
    func `the gateway's cookies are cut out, the others stay as they are`(lines: String, expected: [String]) {
        #expect(fields(lines) == expected)
    }

    @Test func `without the gateway's cookies the fields are forwarded as they are`() {
        #expect(fields("Cookie:  a=1 ;;b", hasCookie: false) == ["A: 1", "Cookie:  a=1 ;;b", "B: 2"])
    }

    @Test func `a field that the route removes, or that concerns the connection, stays removed`() {
        #expect(fields("Cookie: a=1; __Host-martlet=x", remove: ["Cookie"]) == ["A: 1", "B: 2"])
        #expect(fields("Cookie: a=1; __Host-martlet=x\r\nConnection: cookie") == ["A: 1", "B: 2"])
    }

    private static let length = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"

    /// What a client gets for a response with further lines, where the exchange sets a cookie or does not.
    private func response(_ lines: String, setting cookie: String?) throws -> String {
        let bench = try LoopBench { $0.browser = .sample }
        let forwarded = bench.forward()
        if let cookie { bench.run { $0.exchanges.setCookie(cookie, of: forwarded.exchange) } }
        forwarded.server.end.send(Self.length + lines + "\r\nhi")
        bench.event(forwarded.upstream)
        #expect(bench.run { $0.exchanges.cookies.count } == 0)
        return forwarded.client.end.text()
    }

    @Test func `a response sets the exchange's cookie, and no other of the gateway's`() throws {
        let plain = try response("Set-Cookie: a=1\r\n", setting: nil)
        #expect(plain == BenchText.head(Self.length + "Set-Cookie: a=1\r\n") + "hi")
        let both = try response("Set-Cookie: __Host-martlet=stolen\r\nA: 1\r\n", setting: "__Host-martlet=new")
        let head = BenchText.head(Self.length + "A: 1\r\n").dropLast(1)
        #expect(both == head + "Cache-Control: private\r\nSet-Cookie: __Host-martlet=new\r\n\r\nhi")
    }

    @Test func `an error response sets it, too`() throws {
        let bench = try LoopBench { $0.browser = .sample }
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        bench.run {
            $0.exchanges.setCookie("__Host-martlet=new", of: exchange)
            $0.reject(exchange, .noRoute)
        }
        let text = client.end.text()
        #expect(text.contains("\r\nSet-Cookie: __Host-martlet=new\r\n"))
        #expect(bench.run { $0.exchanges.cookies.count } == 0)
    }

    @Test func `an exchange that ends without a response leaves none`() throws {
        let bench = try LoopBench { $0.browser = .sample }
        let forwarded = bench.forward()
        bench.run {
            $0.exchanges.setCookie("__Host-martlet=new", of: forwarded.exchange)
            $0.abandon(forwarded.downstream)
        }
        #expect(bench.run { $0.exchanges.cookies.count } == 0)
    }
}
