import MartletConfig
import MartletCore
import Testing

@testable import MartletRouter

@Suite struct PathExpressions {
    @Test(arguments: [
        ("/v[12]/users", "/v1/users", true), ("/v[12]/users", "/v1/users/", false),
        ("/v[12]/users", "/x/v1/users", false),
        ("users", "/users", false), ("/a|/b", "/b", true), ("/a|/b", "/bc", false), ("/a|/b", "/xb", false),
        ("^/a$", "/a", true), ("^/a$", "/ab", false), ("/a$", "/a\n", false), ("/A", "/a", false),
        ("(?i)/A", "/a", true),
        ("/users/\\d+", "/users/12", true), ("/users/\\d+", "/users/", false), ("/users/?", "/users", true),
        ("/users/?", "/users/", true), ("/us*ers/x", "/ersx", false), ("/us*ers/x", "/uers/x", true),
        ("/ab?/c", "/a/c", true), ("/ab{0}/c", "/a/c", true), ("/a/b|/c/d", "/c/d", true), ("/a/(?=b).", "/a/b", true),
        ("/a.b/c", "/axb/c", true), ("/a\\.b/c", "/a.b/c", true), ("/a\\.b/c", "/axb/c", false), ("", "/", false),
        (".*", "/anything/at/all", true), ("/caf%C3%A9/.*", "/caf%C3%A9/x", true), ("(/x)+", "/x/x/x", true),
    ])
    func `match the whole path`(_ pattern: String, _ path: String, _ matches: Bool) throws {
        let table = try compiled([route(path: regex(pattern))])
        #expect((table.match("GET", path) == .route(0)) == matches)
    }

    @Test(arguments: ["(", "[", "a{2", "(?<x", "*a", "\\", "(*UTF)/.", "\\C", "(?P<n>a)(?P<n>b)", "(?<=a+)b"])
    func `are validated when the table is compiled`(_ pattern: String) {
        // `a{2` is plain text to PCRE2.
        let codes = Compilation([route(path: regex(pattern))]).codes
        #expect(codes == (pattern == "a{2" ? [] : [.configBadPattern]))
    }

    @Test(arguments: ["/(a+)+b", "/(a|aa)+b", "/(.*)*(.*)*(.*)*x"])
    func `that exceed the match limit reject the request`(_ pattern: String) throws {
        let table = try compiled([
            route("before", path: glob("/ok")), route("slow", path: regex(pattern)), route("public", auth: .none),
        ])
        // The last required letter is present, but not at the end, so that PCRE2 cannot fail early.
        let path = "/" + String(repeating: "a", count: 4_000) + "bxy"
        #expect(table.match("GET", path) == .failed(1))
        #expect(table.match("GET", "/ok") == .route(0))
        #expect(table.match("GET", "/b/c") == .route(2))
    }

    @Test func `that exceed the match limit are ignored for other methods`() throws {
        let table = try compiled([
            route("slow", path: regex("/(a+)+b"), methods: ["POST"]),
            route("other", path: glob("/**"), methods: ["GET"]),
        ])
        let path = "/" + String(repeating: "a", count: 4_000) + "bxy"
        #expect(table.match("GET", path) == .route(1))
        #expect(table.match("DELETE", path) == .methodNotAllowed(table.routes[1].pattern.methods))
    }

    @Test(arguments: [
        ("/v1/users/.*", "/v1/users/"), ("^/v1/", "/v1/"), ("/v1/a?b", "/v1/"), ("/v1/a*b", "/v1/"),
        ("/v1/a{0,1}", "/v1/"),
        ("/v1/a+", "/v1/"), ("/v1/a|/v2", ""), ("(?i)/v1", ""), ("/v1.x", "/v1"), ("/v1\\.x", "/v1"), ("/v1(x)", "/v1"),
        ("[/]v1", ""), ("/v1/$", "/v1/"), ("", ""), ("/v1/(a|b)", ""),
    ])
    func `begin with their literal prefix`(_ pattern: String, _ prefix: String) {
        #expect(RegularExpression.literalPrefix(of: pattern) == Array(prefix.utf8))
    }

    @Test func `may be used by many threads concurrently`() async throws {
        let table = try compiled([route(path: regex("/users/([a-z]+)/[0-9]{1,6}"))])
        let wrong = await withTaskGroup(of: Int.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    (0..<500).count { round in
                        let valid = (round + worker).isMultiple(of: 2)
                        let path = "/users/name/" + (valid ? "\(round)" : "\(round)x")
                        return (table.match("GET", path) == .route(0)) != valid
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }
}
