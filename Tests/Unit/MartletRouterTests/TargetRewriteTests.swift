import MartletConfig
import MartletCore
import Testing

@testable import MartletRouter

/// What becomes of targets: `strip_prefix`, then `regex` and `to`, then `add_prefix`.
@Suite struct TargetRewriteTests {
    private static func configuration(
        strip: String? = nil, regex: String? = nil, to: String? = nil, add: String? = nil
    ) -> RouteConfiguration {
        var configuration = route(strip: strip)
        configuration.rewrite.expression = regex.map { located($0) }
        configuration.rewrite.replacement = to.map { located($0) }
        configuration.rewrite.addPrefix = add.map { located($0) }
        return configuration
    }

    private static func rewrite(
        _ configuration: RouteConfiguration, _ path: String, _ query: String = "", paths: PathOptions = PathOptions()
    ) throws -> String? {
        let table = try compiled([configuration], paths: paths)
        let target = table.routes[0].rewrite?.target(path: Array(path.utf8).span, query: Array(query.utf8).span)
        return target.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("/v1/users", "/api/users"), ("/v1", "/api"), ("/v1/", "/api/"), ("/v10", "/api/v10"), ("/", "/api/"),
        ("/x/v1", "/api/x/v1"),
    ])
    func `a prefix is added after one was stripped`(_ path: String, _ expected: String) throws {
        #expect(try Self.rewrite(Self.configuration(strip: "/v1", add: "/api"), path) == expected)
    }

    @Test(
        arguments: [
            ("/users/(\\d+)", "/u/$1", "/users/12", "?a=b", "/u/12?a=b"),
            ("^/users/(\\d+)$", "/u/$1", "/users/12", "", "/u/12"),
            ("/users/(\\d+)", "/u/$1", "/users/12x", "?a=b", "/users/12x?a=b"),
            ("/users/(\\d+)", "/u/$1", "/x/users/12", "", "/x/users/12"),
            ("/users/(\\d+)", "/u?id=$1", "/users/12", "", "/u?id=12"),
            ("/users/(\\d+)", "/u?id=$1", "/users/12", "?a=b&c", "/u?id=12&a=b&c"),
            ("/users/(\\d+)", "/u?id=$1", "/users/12", "?", "/u?id=12"),
            // The client's comes last: nothing that an API has to trust.
            ("/(.*)", "/$1?role=user", "/a", "?role=admin", "/a?role=user&role=admin"),
            ("/users/(.+)", "/u?id=$1", "/users/1&role=admin", "", "/u?id=1%26role%3Dadmin"),
            ("/users/(.+)", "/u?id=$1&x=1", "/users/a&b=c", "", "/u?id=a%26b%3Dc&x=1"),
            ("/users/(.+)", "/u?id=$1", "/users/a%20b/c", "", "/u?id=a%20b/c"),
            ("/(.)(.)(.)(.)(.)(.)(.)(.)(.)", "/$9$8$7$6$5$4$3$2$1", "/123456789", "", "/987654321"),
            ("/(a)?(b)?", "/x$1$2", "/b", "", "/xb"), ("(/.*)", "$1", "/a", "", "/a"),
            ("/(.*)", "/x/$1?", "/a", "?b", "/x/a?b"), ("/(.*)", "/$1$1", "/$1", "", "/$1$1"),
            ("/(.*)", "/x/$1", "/$1$2", "", "/x/$1$2"),
        ])
    func `an expression replaces a path that it matches as a whole`(
        _ regex: String, _ to: String, _ path: String, _ query: String, _ expected: String
    ) throws {
        #expect(try Self.rewrite(Self.configuration(regex: regex, to: to), path, query) == expected)
    }

    @Test func `the steps are taken in their order`() throws {
        let configuration = Self.configuration(strip: "/v1", regex: "/a/(.*)", to: "/b/$1", add: "/api")
        #expect(try Self.rewrite(configuration, "/v1/a/c", "?d") == "/api/b/c?d")
        #expect(try Self.rewrite(configuration, "/a/c") == "/api/b/c")
        #expect(try Self.rewrite(configuration, "/v1/v1/a") == "/api/v1/a")
        let whole = Self.configuration(strip: "/v1", regex: "/", to: "/root", add: "/api")
        #expect(try Self.rewrite(whole, "/v1") == "/api/root")
    }

    @Test(arguments: [
        ("/(.*)", "$1", "/a"), ("/(.*)", "/$1/$1", "/"), ("/a(.*)", "/x$1/../y", "/ab"), ("/a(.*)", "/$1", "/a.."),
        ("/a(.*)b", "/%$1%$1", "/a2eb"), ("/(a*)", "/$1%2F", "/a"), ("/(a*)", "/$1//", "/a"), ("/(a*)", "/%zz$1", "/a"),
    ])
    func `a path that no request could have is rejected`(_ regex: String, _ to: String, _ path: String) throws {
        #expect(try Self.rewrite(Self.configuration(regex: regex, to: to), path) == nil)
    }

    @Test func `the result is normalized as the gateway's paths are`() throws {
        var paths = PathOptions()
        paths.mergesSlashes = true
        let configuration = Self.configuration(regex: "/(.*)", to: "//x//$1")
        #expect(try Self.rewrite(configuration, "/a", paths: paths) == "/x/a")
        #expect(try Self.rewrite(configuration, "/a") == nil)
        #expect(try Self.rewrite(Self.configuration(regex: "/(.*)", to: "/%61$1"), "/b") == "/ab")
    }

    @Test func `an expression that takes too many steps is an error`() throws {
        let configuration = Self.configuration(regex: "/(a+)+b", to: "/x")
        #expect(try Self.rewrite(configuration, "/" + String(repeating: "a", count: 3000) + "bxy") == nil)
    }

    @Test(arguments: [
        ("/(a)", "/$2"), ("/(a)", "/$0"), ("/(a)", "/$"), ("/(a)", "/$x"), ("/(a)", "x$1"), ("/(a)", ""),
        ("/(a)", "/a b"),
        ("/(a)", "/a#b"), ("/(a", "/x"), ("/a", "/$1"), ("/(a)", "/\u{e9}"), ("/(a)", "/\r\nX: y"),
    ])
    func `an invalid expression or replacement is an error`(_ regex: String, _ to: String) {
        #expect(Compilation([Self.configuration(regex: regex, to: to)]).codes == [.configBadPattern])
    }

    @Test func `a route that strips alone has no more to rewrite`() throws {
        let table = try compiled([route(strip: "/v1"), Self.configuration(add: "/a"), route()])
        #expect(table.routes.map { $0.rewrite != nil } == [false, true, false])
        #expect(Compilation([Self.configuration(add: "/a//b")]).codes == [.configBadPattern])
    }
}
