import MartletConfig
import MartletCore
import Testing

@testable import MartletRouter

@Suite struct Methods {
    @Test(arguments: [
        (["GET"], "GET", true), (["GET"], "HEAD", true), (["HEAD"], "GET", false), (["HEAD"], "HEAD", true),
        (["GET"], "get", false), (["POST"], "GET", false), (["GET", "POST"], "POST", true), ([], "GET", true),
        ([], "BREW", true), (["BREW"], "BREW", true), (["BREW"], "BREWS", false), (["GET"], "", false),
        (["VERSION-CONTROL"], "VERSION-CONTROL", true), (["VERSION-CONTROL"], "VERSION-CONTROX", false),
        (["PROPFIND"], "PROPFIND", true), (["GET"], "\0GET", false), (["GET"], "GET\0", false),
        (["GET"], "VERSION-CONTROL", false),
    ])
    func `match byte by byte, and GET includes HEAD`(_ listed: [String], _ method: String, _ matches: Bool) throws {
        let table = try compiled([route(methods: listed)])
        let match = table.match(method, "/")
        if matches { #expect(match == .route(0)) } else { #expect(match != .route(0) && match != .none) }
    }

    @Test func `are listed together if no route of a path matches the method`() throws {
        let table = try compiled([
            route("a", path: glob("/x/**"), methods: ["DELETE", "GET"]),
            route("b", path: glob("/x/y"), methods: ["BREW"]),
            route("c", path: glob("/z"), methods: ["PATCH"]),
            route("d", hosts: ["h.test"], path: glob("/x/y"), methods: ["PUT"]),
            route("e", path: regex("/r/[a-z]+"), methods: ["POST"]),
        ])
        func allow(_ path: String, _ host: String = "") -> String? {
            guard case .methodNotAllowed(let set) = table.match("OPTIONS", path, host: host) else { return nil }
            return table.allowValue(set)
        }
        #expect(allow("/x/y") == "GET, HEAD, DELETE, BREW")
        #expect(allow("/x/y", "h.test") == "GET, HEAD, PUT, DELETE, BREW")
        #expect(allow("/x") == "GET, HEAD, DELETE")
        #expect(allow("/z") == "PATCH")
        #expect(allow("/r/abc") == "POST")
        #expect(allow("/r/1") == nil)
        #expect(allow("/q") == nil)
        #expect(table.match("PUT", "/x/y") != .none)
    }

    @Test func `do not stop the search: a later route may match`() throws {
        let table = try compiled([route("a", path: glob("/x"), methods: ["GET"]), route("b", path: glob("/**"))])
        #expect(table.match("POST", "/x") == .route(1))
        let (post, path) = (Array("POST".utf8), Array("/x".utf8))
        #expect(
            table.misses(method: post.span, authority: [UInt8]().span, path: path.span)
                == [RouteMiss(route: 0, reason: .method)])
    }

    @Test func `are rejected if not tokens or too many`() {
        #expect(Compilation([route(methods: ["GET POST"])]).codes == [.configBadValue])
        #expect(Compilation([route(methods: [""])]).codes == [.configBadValue])
        let many = (0..<57).map { "M\($0)" }
        #expect(Compilation([route(methods: many)]).codes == [.configBadValue])
        #expect(Compilation([route(methods: Array(many.dropLast()))]).codes == [])
    }
}
