import MartletConfig
import Testing

@testable import MartletRouter

struct GlobCase: Sendable, CustomTestStringConvertible {
    let pattern: String
    let path: String
    let matches: Bool

    init(_ pattern: String, _ path: String, _ matches: Bool) {
        self.pattern = pattern
        self.path = path
        self.matches = matches
    }

    var testDescription: String { "\(pattern) \(matches ? "matches" : "does not match") \(path)" }
}

@Suite struct PathGlobs {
    static let cases: [GlobCase] = [
        .init("/", "/", true), .init("/", "/a", false), .init("/a", "/", false),
        .init("/a", "/a", true), .init("/a", "/a/", false), .init("/a/", "/a", false), .init("/a/", "/a/", true),
        .init("/a", "/A", false), .init("/a", "/ab", false), .init("/ab", "/a", false), .init("/a", "/a/b", false),
        .init("/a/b", "/a/b", true), .init("/a/b", "/a/c", false), .init("/a/b", "/b/b", false),
        // One segment.
        .init("/*", "/a", true), .init("/*", "/", false), .init("/*", "/a/b", false), .init("/*", "/a/", false),
        .init("/*/", "/a/", true), .init("/*/", "/a", false), .init("/a/*", "/a", false), .init("/a/*", "/a/", false),
        .init("/a/*", "/a/b", true), .init("/a/*", "/a/b/c", false), .init("/a/*/c", "/a/b/c", true),
        .init("/a/*/c", "/a/c", false), .init("/a/*/c", "/a/b/b/c", false), .init("/*/*", "/a/b", true),
        .init("/*/*", "/a", false), .init("/*/b", "/a/b", true), .init("/*/b", "/b", false),
        // A part of a segment.
        .init("/a*", "/a", true), .init("/a*", "/abc", true), .init("/a*", "/abc/d", false), .init("/a*", "/b", false),
        .init("/*.js", "/x.js", true), .init("/*.js", "/.js", true), .init("/*.js", "/x.jsx", false),
        .init("/*.js", "/d/x.js", false), .init("/a*b*c", "/abc", true), .init("/a*b*c", "/axxbyyc", true),
        .init("/a*b*c", "/axxbyycd", false), .init("/a*b*c", "/acb", false), .init("/a*b*c", "/a/b/c", false),
        .init("/*a", "/aaaa", true), .init("/*ab", "/aaab", true), .init("/*ab", "/aaba", false),
        .init("/v*/users", "/v1/users", true), .init("/v*/users", "/v/users", true),
        .init("/v*/users", "/w1/users", false),
        // Whole segments.
        .init("/**", "/", true), .init("/**", "/a", true), .init("/**", "/a/b/c/", true),
        .init("/v1/**", "/v1", true), .init("/v1/**", "/v1/", true), .init("/v1/**", "/v1/a", true),
        .init("/v1/**", "/v1/a/b/", true), .init("/v1/**", "/v10", false), .init("/v1/**", "/v", false),
        .init("/v1/**", "/V1/a", false), .init("/v1/**/", "/v1/", true), .init("/v1/**/", "/v1/a/", true),
        .init("/v1/**/", "/v1", false), .init("/v1/**/", "/v1/a", false),
        .init("/**/x", "/x", true), .init("/**/x", "/a/b/x", true), .init("/**/x", "/a/x/b", false),
        .init("/**/x", "/ax", false), .init("/a/**/x", "/a/x", true), .init("/a/**/x", "/a/b/c/x", true),
        .init("/a/**/x", "/a/x/y", false), .init("/a/**/x", "/a/x/y/x", true), .init("/a/**/x", "/b/x", false),
        .init("/**/a/**/b", "/a/b", true), .init("/**/a/**/b", "/x/a/y/z/b", true), .init("/**/a/**/b", "/b/a", false),
        .init("/**/a/b", "/a/a/b", true), .init("/**/a/*/b", "/a/a/c/b", true), .init("/**/**", "/", true),
        .init("/**/*", "/", false), .init("/**/*", "/a/b", true), .init("/**/*.js", "/a/b/x.js", true),
        .init("/**/*.js", "/a/b.js/x", false), .init("/*/**", "/", false), .init("/*/**", "/a", true),
        // Spelling.
        .init("/caf\u{e9}", "/caf%C3%A9", true), .init("/caf%c3%a9", "/caf%C3%A9", true),
        .init("/caf\u{e9}", "/cafe%CC%81", false), .init("/%61%7Eb", "/a~b", true), .init("/a b", "/a%20b", true),
        .init("/a%2ab", "/a%2Ab", true), .init("/a%2Ab", "/axb", false), .init("/a;v=1", "/a;v=1", true),
        .init("/a.b", "/a.b", true), .init("/a.b", "/axb", false), .init("/a+b$(c)", "/a+b$(c)", true),
    ]

    @Test(arguments: cases) func `matches whole normalized paths`(_ item: GlobCase) throws {
        let table = try compiled([route(path: glob(item.pattern))])
        #expect((table.match("GET", item.path) == .route(0)) == item.matches)
        let misses = table.misses(
            method: Array("GET".utf8).span, authority: [UInt8]().span, path: Array(item.path.utf8).span)
        #expect(misses == (item.matches ? [] : [RouteMiss(route: 0, reason: .path)]))
    }

    @Test(arguments: [
        "", "a", "a/b", "//", "/a//b", "/a/../b", "/a/.", "/..;x/a", "/%2e%2e/a", "/a%2Fb", "/a%25b", "/a%00", "/a%5Cb",
        "/a%7f", "/a\\b", "/a?b", "/a#b", "/a%", "/a%2", "/a%zz", "/a\u{1}", "/%ff", "/%C0%AF", "/a**", "/a**b", "/***",
        "/users/{id}",
    ])
    func `rejects a pattern that could never match`(_ pattern: String) {
        #expect(Compilation([route(path: glob(pattern))]).codes == [.configBadPattern])
    }

    @Test func `may have encoded slashes and percents if requests may`() throws {
        var paths = PathOptions()
        paths.keepsEncodedSlash = true
        paths.keepsEncodedPercent = true
        let table = try compiled([route(path: glob("/a%2fb/*/c%25")), route(path: glob("/a/b"))], paths: paths)
        #expect(table.match("GET", "/a%2Fb/x%2Fy/c%25") == .route(0))
        #expect(table.match("GET", "/a/b/x/c%25") == .none)
        #expect(table.match("GET", "/a/b") == .route(1))
    }

    @Test func `matches patterns with many stars in bounded time`() throws {
        let deep = String(repeating: "/**/a*a*a*a*b", count: 8)
        let table = try compiled([route(path: glob(deep))])
        #expect(table.match("GET", String(repeating: "/" + String(repeating: "a", count: 60), count: 130)) == .none)
        #expect(table.match("GET", String(repeating: "/aaaaab", count: 8)) == .route(0))
    }

    @Test func `matches only paths that begin with a slash`() throws {
        let table = try compiled([route()])
        #expect(table.match("OPTIONS", "*") == .none)
        #expect(table.match("GET", "") == .none)
        #expect(table.match("GET", "/") == .route(0))
    }
}
