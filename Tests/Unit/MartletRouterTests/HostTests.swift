import MartletConfig
import Testing

@testable import MartletRouter

struct HostCase: Sendable, CustomTestStringConvertible {
    let pattern: String
    let host: String
    let matches: Bool

    init(_ pattern: String, _ host: String, _ matches: Bool) {
        self.pattern = pattern
        self.host = host
        self.matches = matches
    }

    var testDescription: String { "\(pattern) \(matches ? "matches" : "does not match") '\(host)'" }
}

@Suite struct Hosts {
    static let cases: [HostCase] = [
        .init("api.example.com", "api.example.com", true), .init("api.example.com", "API.Example.COM", true),
        .init("Api.Example.Com", "api.example.com", true), .init("api.example.com", "api.example.com:8080", true),
        .init("api.example.com", "api.example.com:", true), .init("api.example.com", "api.example.com.", true),
        .init("api.example.com.", "api.example.com", true), .init("api.example.com", "api.example.com.:443", true),
        .init("api.example.com", "api.example.com..", false), .init("api.example.com", "xapi.example.com", false),
        .init("api.example.com", "api.example.co", false), .init("api.example.com", "a.api.example.com", false),
        .init("api.example.com", "api.example.com:80x", false),
        .init("api.example.com", "api.example.com:80:80", false),
        .init("api.example.com", "", false), .init("api.example.com", ".", false),
        .init("api.example.com", ":80", false),
        .init("api.example.com", "user@api.example.com", false), .init("api.example.com", "api.example.com ", false),
        .init("api.example.com", "api.example.com\0", false), .init("api.example.com", "api.example.com,b", false),
        .init("*.example.com", "a.example.com", true), .init("*.example.com", "A.EXAMPLE.com.:1", true),
        .init("*.example.com", "a.b.c.example.com", true), .init("*.example.com", "example.com", false),
        .init("*.example.com", ".example.com", false), .init("*.example.com", "a..example.com", false),
        .init("*.example.com", "..example.com", false), .init("*.example.com", "evilexample.com", false),
        .init("*.example.com", "a.example.com.evil.org", false), .init("*.example.com", "*.example.com", true),
        .init("*.com", "example.com", true), .init("*.com", "com", false), .init("localhost", "LOCALHOST:3000", true),
        .init("127.0.0.1", "127.0.0.1:8080", true), .init("127.0.0.1", "127.0.0.10", false),
        .init("[::1]", "[::1]", true), .init("::1", "[::1]:8080", true), .init("[::1]", "[0:0:0:0:0:0:0:1]:80", true),
        .init("[2001:DB8::1]", "[2001:db8:0::1]", true), .init("[::1]", "::1", false), .init("[::1]", "[::1", false),
        .init("[::1]", "[::1]80", false), .init("[::1]", "[::1]:x", false), .init("[::1]", "[::2]", false),
        .init("[::1]", "[]", false), .init("[::1]", "[::1%25lo]", false), .init("[::1]", "[:::::::::::::]", false),
        .init("[::ffff:10.0.0.1]", "[::ffff:a00:1]", true),
        .init("[::1]", "[" + String(repeating: "0", count: 200) + "]", false),
    ]

    @Test(arguments: cases) func `match in any case, with or without port and trailing dot`(_ item: HostCase) throws {
        // Once alone, and once among others that the index must distinguish.
        let others = (0..<50).map { route("o\($0)", hosts: ["o\($0).test", "*.o\($0).test"]) }
        for routes in [[route(hosts: [item.pattern])], others + [route(hosts: ["other.test", item.pattern])]] {
            let table = try compiled(routes)
            let expected = item.matches ? RouteMatch.route(routes.count - 1) : .none
            #expect(table.match("GET", "/", host: item.host) == expected)
            let misses = table.misses(
                method: Array("GET".utf8).span, authority: Array(item.host.utf8).span, path: Array("/".utf8).span)
            #expect(misses.count == routes.count - (item.matches ? 1 : 0))
            #expect(misses.allSatisfy { $0.reason == .host })
        }
    }

    @Test(arguments: [
        "", "*", "a.*.com", "*.*.com", "*.", "a..b", ".a", "a.com:80", "[::1]:80", "[::1", "b\u{fc}cher.de", "a b",
        "a/b",
        "a@b", "a*.com", "*a.com", String(repeating: "a", count: 64) + ".com",
        String(repeating: "ab.", count: 90) + "com",
    ])
    func `reject an invalid host pattern`(_ pattern: String) {
        #expect(Compilation([route(hosts: [pattern])]).codes == [.configBadPattern])
    }

    @Test func `match in file order, not by specificity`() throws {
        let table = try compiled([
            route("wild", hosts: ["*.example.com"], path: glob("/a/**")),
            route("exact", hosts: ["api.example.com"]), route("deep", hosts: ["*.api.example.com"]), route("any"),
        ])
        #expect(table.match("GET", "/a", host: "api.example.com") == .route(0))
        #expect(table.match("GET", "/b", host: "api.example.com") == .route(1))
        #expect(table.match("GET", "/b", host: "x.api.example.com") == .route(2))
        #expect(table.match("GET", "/b", host: "example.com") == .route(3))
        #expect(table.match("GET", "/b", host: "") == .route(3))
    }
}
