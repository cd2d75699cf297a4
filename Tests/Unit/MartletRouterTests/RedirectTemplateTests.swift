import MartletConfig
import MartletCore
import Testing

@testable import MartletRouter

/// Targets of redirects: what they become, and what a request cannot make of them.
@Suite struct RedirectTemplateTests {
    private static func render(
        _ template: String, _ path: String = "/a/b", query: String = "", host: String = "www.example.com"
    ) throws -> String? {
        let target = try RedirectTemplate(template).render(
            authority: Array(host.utf8).span, path: Array(path.utf8).span, query: Array(query.utf8).span)
        return target.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("/x", "/x"), ("/", "/"), ("https://a.example", "https://a.example"),
        ("https://a.example$path", "https://a.example/a/b"),
        ("http://a.example:81/x$path?$query", "http://a.example:81/x/a/b?v=1&w=%20"), ("$path", "/a/b"),
        ("$path/c?$query", "/a/b/c?v=1&w=%20"), ("https://a.example/?$query&x=1", "https://a.example/?v=1&w=%20&x=1"),
        ("https://a.example?to=$path", "https://a.example?to=/a/b"),
        ("https://$host$path", "https://www.example.com/a/b"),
        ("https://m.$host:8443/", "https://m.www.example.com:8443/"), ("/login?at=$host", "/login?at=www.example.com"),
        ("https://a.example/#/new", "https://a.example/#/new"), ("https://[::1]/x", "https://[::1]/x"),
        ("/$host/x", "/www.example.com/x"), ("/a%24b", "/a%24b"),
    ])
    func `a target is filled in`(_ template: String, _ expected: String) throws {
        #expect(try Self.render(template, query: "v=1&w=%20", host: "www.example.com:8080") == expected)
    }

    @Test(arguments: [
        ("$path?$query", "/a/b"), ("/x?$query", "/x"), ("/x?a=1&$query", "/x?a=1"), ("/x?$query&a=1", "/x?a=1"),
        ("/x?$query#f", "/x#f"), ("/x?$query$query", "/x"), ("https://a.example?$query", "https://a.example"),
    ])
    func `an empty query leaves nothing behind`(_ template: String, _ expected: String) throws {
        #expect(try Self.render(template) == expected)
    }

    @Test(arguments: [
        ("/x?to=$path", "/a&b=c;d%20+", "", "/x?to=/a%26b%3Dc%3Bd%2520%2B"),
        ("/x?$query", "/", "a=\"<>\\^`{|}", "/x?a=%22%3C%3E%5C%5E%60%7B%7C%7D"),
        ("/x?$query", "/", "a\r\nSet-Cookie: b", "/x?a%0D%0ASet-Cookie:%20b"),
        ("https://a.example$path", "/a\r\nb#c", "", "https://a.example/a%0D%0Ab%23c"),
        ("https://a.example$path", "/@evil.example/", "", "https://a.example/@evil.example/"),
        ("https://$host/", "/", "", "https://[::1]/"),
    ])
    func `a request's text stays in its part of the target`(
        _ template: String, _ path: String, _ query: String, _ expected: String
    ) throws {
        #expect(try Self.render(template, path, query: query, host: "[::1]:81") == expected)
    }

    @Test(arguments: [
        ("$path", "//evil.example/x"), ("$path", "/\\evil.example"), ("$path/evil.example", "/"), ("$path$path", "/"),
        ("https://a.example$path", ".evil.example/"), ("https://a.example$path", ""),
        ("https://a.example$path", "@evil"),
    ])
    func `no path leads to another host`(_ template: String, _ path: String) throws {
        let target = try Self.render(template, path)
        #expect(target == nil || target == "/%5Cevil.example")
    }

    @Test(arguments: [
        "", "x", "ftp://a.example/", "HTTPS://a.example/", "//a.example/", "/\\a.example", "https://", "https:///x",
        "https://?x", "https://:80/", "https://a@b.example/", "https://a.example%2e/", "https://$path", "$host/x",
        "/$path", "https://a.example/$path", "https://a.example/x/$path", "https://a.example$query", "/x$query",
        "/x$unknown", "/x$", "/$1", "/x#$path", "/x#a#b", "/a b", "/a\r\nb", "/a<b", "/\u{e9}", "https://a.example|/",
        "/$paths", "/${path}", "$query",
    ])
    func `a template that is no target, or could lead anywhere, is an error`(_ template: String) {
        #expect(throws: PatternError.self) { try RedirectTemplate(template) }
    }

    @Test func `the request's host as that of the target needs hosts`() throws {
        for (target, hosts, codes) in [
            ("https://$host/", [], [ErrorCode.configBadPattern]), ("https://m.$host/", [], [.configBadPattern]),
            ("https://$host/", ["a.example"], []), ("/x?at=$host", [], []),
            ("https://a.example@/", [], [.configBadPattern]),
        ] as [(String, [String], [ErrorCode])] {
            var configuration = route(hosts: hosts)
            configuration.upstream = nil
            configuration.response = .redirect(RedirectConfiguration(target: located(target)))
            #expect(Compilation([configuration]).codes == codes, "\(target) \(hosts)")
        }
    }

    @Test func `a route with a response has no upstream`() throws {
        var configuration = route(path: glob("/closed"))
        configuration.upstream = nil
        var fixed = FixedResponseConfiguration()
        (fixed.status, fixed.body, fixed.contentType) = (503, [0x61], "text/html")
        configuration.response = .fixed(fixed)
        let table = try compiled([configuration, route()])
        #expect(table.routes.map(\.upstream) == [-1, 1] && table.routes.map { $0.response?.status } == [503, nil])
        guard case .fixed(503, "text/html", [0x61])? = table.routes[0].response else {
            Issue.record("\(table.routes[0])")
            return
        }
    }
}
