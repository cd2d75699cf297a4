import MartletConfig
import MartletCore
import MartletHTTP
import Testing

@testable import MartletRouter

@Suite struct RouteTables {
    @Test func `resolve defaults and names of routes`() throws {
        let table = try compiled([
            route("a", auth: .none, body: .unlimited, upstream: "web"),
            route("b", auth: .required(providers: ["wechat"]), body: .bytes(7)),
            route("c", auth: .optional(providers: [])),
        ])
        let routes = table.routes
        #expect(routes.map(\.name) == ["a", "b", "c"])
        #expect(routes.map(\.upstream) == [0, 1, 1])
        #expect(routes.map(\.bodyLimit) == [nil, 7, 10 * 1_024 * 1_024])
        #expect(routes.map(\.mode) == [.none, .required, .optional])
        #expect(routes.map(\.providers) == [[], [1], [0, 1]])
    }

    @Test func `report all errors together and do not compile`() {
        let compilation = Compilation([
            route("a", hosts: ["*"], path: glob("x"), upstream: "nowhere"),
            route("b", auth: .required(providers: ["appel"])),
            route("c", path: regex("("), strip: "/../x"),
        ])
        #expect(compilation.table == nil)
        #expect(
            compilation.codes == [
                .configBadPattern, .configBadPattern, .configUnknownUpstream, .configUnknownProvider, .configBadPattern,
                .configBadPattern,
            ])
        #expect(compilation.diagnostics.all[3].text == "route 'b' names provider 'appel', which is not defined")
    }

    @Test func `report whether methods matter for a host and path`() throws {
        func restricts(_ table: RouteTable, _ path: String, _ host: String = "a") -> Bool {
            table.restrictsMethods(authority: Array(host.utf8).span, path: Array(path.utf8).span)
        }
        let table = try compiled([
            route("first", path: glob("/**")), route("a", path: glob("/a/**"), methods: ["POST"]),
            route("b", hosts: ["b.test"], path: regex("/b/[0-9]+"), methods: ["GET"]),
        ])
        #expect(table.restrictsMethods && restricts(table, "/a/x") && restricts(table, "/b/1", "b.test"))
        #expect(!restricts(table, "/b/1") && !restricts(table, "/b/x", "b.test") && !restricts(table, "/c"))
        #expect(try !compiled([route("a", path: glob("/**"))]).restrictsMethods)
    }

    @Test func `recognize a method in another letter case`() throws {
        let table = try compiled([route("a", methods: ["PURGE", "Mixed"])])
        func isOther(_ method: String) -> Bool { table.hasMethodInOtherCase(Array(method.utf8).span) }
        #expect(isOther("purge") && isOther("MIXED") && isOther("get"))
        #expect(!isOther("PURGE") && !isOther("Mixed") && !isOther("PURG") && !isOther("OTHER"))
        #expect(Compilation([route(methods: ["post"])]).codes == [.configBadValue])
    }

    @Test func `without routes match nothing`() throws {
        #expect(try compiled([]).match("GET", "/") == .none)
    }

    @Test(arguments: [
        ("/v1", "/v1/users", "/users"), ("/v1", "/v1", "/"), ("/v1", "/v1/", "/"), ("/v1", "/v10", "/v10"),
        ("/v1", "/v10/x", "/v10/x"), ("/v1", "/V1/x", "/V1/x"), ("/v1", "/x/v1/y", "/x/v1/y"),
        ("/v1/", "/v1/users", "/users"),
        ("/v1/", "/v1", "/"), ("/a/b", "/a/b/c", "/c"), ("/a/b", "/a/bc", "/a/bc"), ("/a/b", "/a", "/a"),
        ("/", "/a", "/a"),
        ("/caf\u{e9}", "/caf%C3%A9/x", "/x"), ("/v1", "/", "/"), ("/v1", "/v1/v1/x", "/v1/x"),
    ])
    func `strip whole leading segments`(_ prefix: String, _ path: String, _ expected: String) throws {
        let table = try compiled([route(strip: prefix)])
        let rewrite = table.routes[0].rewrite(path: Array(path.utf8).span)
        #expect((rewrite.becomesRoot ? "/" : String(path.dropFirst(rewrite.strippedBytes))) == expected)
    }

    @Test(arguments: ["v1", "/v1/*", "/a//b", "/..", "/v1?x", "/%2e"])
    func `reject an invalid prefix`(_ prefix: String) {
        #expect(Compilation([route(strip: prefix)]).codes == [.configBadPattern])
    }

    @Test(arguments: [
        // A path as a client may send it, and the pattern that must match it.
        ("/caf%c3%a9", "/caf\u{e9}"), ("/%61dmin/%7e", "/admin/~"), ("/a%20b", "/a b"), ("/a;v=1", "/a;v=1"),
        ("/a%2ab", "/a%2Ab"), ("/a@b:c", "/a@b:c"), ("/%E4%BD%A0", "/\u{4f60}"), ("/a%7bb", "/a%7Bb"),
    ])
    func `match the normal form of paths`(_ sent: String, _ pattern: String) throws {
        let table = try compiled([route(path: glob(pattern))])
        var normal = ByteBuffer()
        let outcome = PathNormalizer.normalize(
            Array(sent.utf8).span, keepsEncodedSlash: false, keepsEncodedPercent: false, into: &normal)
        let path = outcome == .rewritten ? String(decoding: normal.array, as: UTF8.self) : sent
        #expect(table.match("GET", path) == .route(0))
    }
}
