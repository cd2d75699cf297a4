import MartletConfig
import MartletCore
import MartletHTTP
import Testing

@testable import MartletRouter

/// Routes that depend on a request's own headers and parameters.
@Suite struct RequestConditionTests {
    private static func condition(
        _ source: RequestConditionConfiguration.Source, _ name: String, _ test: RequestConditionConfiguration.Test
    ) -> RequestConditionConfiguration {
        RequestConditionConfiguration(source, located(name), test)
    }

    /// A route with conditions.
    private static func conditional(
        _ name: String, _ conditions: [RequestConditionConfiguration], path: String = "/**", methods: [String] = []
    ) -> RouteConfiguration {
        var configuration = route(name, path: glob(path), methods: methods)
        configuration.conditions = conditions
        return configuration
    }

    /// Matches a request as the request path does.
    private static func match(_ table: RouteTable, _ text: String) throws -> RouteMatch {
        let bytes = Array(text.utf8)
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        #expect(parser.parse(bytes.span, into: &head) == .complete(bytes.count))
        let path = bytes.span.extracting(head.path.bounds)
        let found = table.match(
            method: bytes.span.extracting(head.methodText.bounds),
            authority: bytes.span.extracting(head.authority.bounds), path: path)
        return table.resolve(found, &head, bytes.span, path: path)
    }

    private static func request(
        _ target: String = "/", _ fields: [String] = [], method: String = "GET"
    ) -> String {
        "\(method) \(target) HTTP/1.1\r\nHost: a\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    @Test(
        arguments: [
            (.equals("1"), ["X-Canary: 1"], true), (.equals("1"), ["x-canary:1  "], true),
            (.equals("1"), ["X-Canary: 12"], false), (.equals("1"), ["X-Canary: "], false), (.equals("1"), [], false),
            (.equals("1"), ["X-Canary: 0", "X-Canary: 1"], false),
            (.equals("1"), ["X-Canary: 1", "X-Canary: 0"], true),
            (.equals("1"), ["X_Canary: 1"], false), (.equals("1"), ["X-Canaryy: 1"], false),
            (.equals(""), ["X-Canary:"], true), (.equals(""), [], false),
            (.prefix("ab"), ["X-Canary: abc"], true), (.prefix("ab"), ["X-Canary: a"], false),
            (.prefix("ab"), ["X-Canary: Abc"], false),
            (.matches(located("a+")), ["X-Canary: aaa"], true), (.matches(located("a+")), ["X-Canary: aab"], false),
            (.matches(located("a|b")), ["X-Canary: bc"], false), (.matches(located("a+")), [], false),
            (.present(true), ["X-Canary:"], true), (.present(true), [], false), (.present(false), [], true),
            (.present(false), ["X-Canary: 1"], false),
        ] as [(RequestConditionConfiguration.Test, [String], Bool)])
    func `a header is tested by its first field`(
        _ test: RequestConditionConfiguration.Test, _ fields: [String], _ expected: Bool
    ) throws {
        let table = try compiled([Self.conditional("a", [Self.condition(.header, "X-Canary", test)]), route("b")])
        #expect(try Self.match(table, Self.request("/", fields)) == .route(expected ? 0 : 1))
    }

    @Test(
        arguments: [
            (.equals("2"), "/?v=2", true), (.equals("2"), "/?a=b&v=2&c", true), (.equals("2"), "/?v=%32", true),
            (.equals("2"), "/?%76=2", true), (.equals("2"), "/?v=2&v=3", true), (.equals("2"), "/?v=3&v=2", false),
            (.equals("2"), "/?V=2", false), (.equals("2"), "/?vv=2", false), (.equals("2"), "/", false),
            (.equals("2"), "/?", false), (.equals("a b&c"), "/?v=a+b%26c", true), (.equals("2="), "/?v=2=", true),
            (.equals("%2"), "/?v=%2", true), (.equals("%zz"), "/?v=%zz", true), (.equals("\u{e9}"), "/?v=%C3%A9", true),
            (.equals(""), "/?v", true), (.equals(""), "/?v=", true), (.equals(""), "/?&&v", true),
            (.present(true), "/?a&v", true), (.present(true), "/?a=v", false), (.present(false), "/?a=v", true),
            (.prefix("ab"), "/?v=abc", true), (.matches(located("[0-9]+")), "/?v=12", true),
            (.matches(located("[0-9]+")), "/?v=12a", false), (.matches(located("[0-9]+")), "/?v=1%0A", false),
        ] as [(RequestConditionConfiguration.Test, String, Bool)])
    func `a parameter is tested by its first value, decoded`(
        _ test: RequestConditionConfiguration.Test, _ target: String, _ expected: Bool
    ) throws {
        let table = try compiled([Self.conditional("a", [Self.condition(.query, "v", test)]), route("b")])
        #expect(try Self.match(table, Self.request(target)) == .route(expected ? 0 : 1))
    }

    @Test func `all conditions must hold, and the first route in the file whose do is taken`() throws {
        let canary = Self.condition(.header, "X-Canary", .equals("1"))
        let version = Self.condition(.query, "v", .equals("2"))
        let table = try compiled([
            Self.conditional("both", [canary, version]), Self.conditional("canary", [canary]),
            Self.conditional("deep", [version], path: "/a/*"), route("exact", path: glob("/a/b")), route("rest"),
        ])
        for (target, fields, expected) in [
            ("/?v=2", ["X-Canary: 1"], 0), ("/?v=1", ["X-Canary: 1"], 1), ("/", ["X-Canary: 1"], 1), ("/?v=2", [], 4),
            ("/a/b?v=2", [], 2), ("/a/b", [], 3), ("/a/c?v=1", [], 4), ("/a/c?v=2", [], 2), ("/", [], 4),
        ] as [(String, [String], Int)] {
            #expect(try Self.match(table, Self.request(target, fields)) == .route(expected), "\(target) \(fields)")
        }
    }

    @Test func `a route whose conditions fail neither matches nor allows methods`() throws {
        let canary = Self.condition(.header, "X-Canary", .equals("1"))
        let table = try compiled([
            Self.conditional("read", [canary], path: "/a", methods: ["GET"]),
            route("write", path: glob("/a"), methods: ["PUT"]),
            Self.conditional("only", [canary], path: "/b", methods: ["GET"]),
        ])
        #expect(try Self.match(table, Self.request("/a", ["X-Canary: 1"])) == .route(0))
        guard case .methodNotAllowed(let allowed) = try Self.match(table, Self.request("/a")) else {
            Issue.record("a request is allowed")
            return
        }
        #expect(table.allowValue(allowed) == "PUT")
        #expect(try Self.match(table, Self.request("/b")) == .none)
        #expect(try Self.match(table, Self.request("/b", method: "POST")) == .none)
    }

    @Test func `an expression that takes too many steps is no reason to pass the route over`() throws {
        let slow = Self.condition(.header, "X-Canary", .matches(located("(a+)+b")))
        let table = try compiled([Self.conditional("slow", [slow]), route("rest")])
        // The last required letter is present, but not at the end, so that PCRE2 cannot fail early.
        let value = String(repeating: "a", count: 3000) + "bxy"
        #expect(try Self.match(table, Self.request("/", ["X-Canary: \(value)"])) == .failed(0))
    }

    @Test func `a search after a route agrees with a table without it`() throws {
        let paths = ["/**", "/a/*", "/a/b", "/*/b", "/a/**", "/a/*b"]
        let hosts = [[], ["a"], ["*.a"]]
        let routes = (0..<18).map { route("r\($0)", hosts: hosts[$0 % 3], path: glob(paths[$0 * 5 % 6])) }
        let table = try compiled(routes)
        for skipped in routes.indices {
            let rest = try compiled(Array(routes[(skipped + 1)...]))
            for path in ["/", "/a", "/a/b", "/a/xb", "/x/b", "/a/b/c"] {
                let (method, host, bytes) = (Array("GET".utf8), Array("a".utf8), Array(path.utf8))
                let found = table.match(after: skipped, method: method.span, authority: host.span, path: bytes.span)
                let expected = rest.match(method: method.span, authority: host.span, path: bytes.span)
                guard case .route(let index) = expected else {
                    let isRoute = if case .route = found { true } else { false }
                    #expect(!isRoute, "\(skipped) \(path)")
                    continue
                }
                #expect(found == .route(index + skipped + 1), "\(skipped) \(path)")
            }
        }
    }

    @Test func `an explanation names what does not match`() throws {
        let canary = Self.condition(.header, "X-Canary", .equals("1"))
        let version = Self.condition(.query, "v", .equals("2"))
        let table = try compiled([
            Self.conditional("a", [canary]), Self.conditional("b", [version]), Self.conditional("c", [], path: "/c"),
            route("d"),
        ])
        let bytes = Array(Self.request().utf8)
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        #expect(parser.parse(bytes.span, into: &head) == .complete(bytes.count))
        let misses = table.misses(
            method: bytes.span.extracting(head.methodText.bounds),
            authority: bytes.span.extracting(head.authority.bounds),
            path: bytes.span.extracting(head.path.bounds), unmet: { table.unmetCondition(of: $0, &head, bytes.span) })
        #expect(misses.map(\.reason) == [.header, .query, .path])
    }

    @Test func `a condition on a header that the gateway sets is an error`() {
        for name in ["X-Auth-Subject", "x-auth-anything", "X-User-Id", "X_USER.ID"] {
            let routes = [
                Self.conditional("a", [Self.condition(.header, name, .present(true))]),
                route("b", set: [header("X-User-Id", .attribute(.subject))]),
            ]
            #expect(Compilation(routes).codes == [.configBadHeader], "\(name)")
        }
        let pattern = Self.condition(.query, "v", .matches(located("(")))
        #expect(Compilation([Self.conditional("a", [pattern])]).codes == [.configBadPattern])
    }
}
