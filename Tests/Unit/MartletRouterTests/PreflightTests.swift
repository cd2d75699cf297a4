import MartletConfig
import MartletHTTP
import Testing

@testable import MartletRouter

/// Which route a preflight belongs to.
@Suite struct `Routes of preflights` {
    private static func ruled(
        _ name: String, _ path: String = "/**", hosts: [String] = [], methods: [String] = [], cors: Bool = true,
        _ conditions: [RequestConditionConfiguration] = []
    ) -> RouteConfiguration {
        var configuration = route(name, hosts: hosts, path: glob(path), methods: methods, auth: .none)
        configuration.conditions = conditions
        if cors { configuration.crossOrigin = CrossOriginConfiguration(origins: [.exact("https://a.test")]) }
        return configuration
    }

    /// The name of the route; `nil` if the gateway does not respond.
    private static func found(
        _ routes: [RouteConfiguration], _ method: String, _ target: String = "/x", host: String = "b"
    ) throws -> String? {
        let table = try compiled(routes)
        let bytes = Array("OPTIONS \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8)
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        #expect(parser.parse(bytes.span, into: &head) == .complete(bytes.count))
        let name = Array(method.utf8)
        let path = Array(bytes[head.path.bounds])
        return table.preflightRoute(method: name.span, &head, bytes.span, path: path.span)
            .map { table.routes[$0].name }
    }

    @Test func `the method that is asked about picks the route`() throws {
        let routes = [
            Self.ruled("read", methods: ["GET"]), Self.ruled("write", methods: ["POST", "PUT"]),
            Self.ruled("options", methods: ["OPTIONS"], cors: false), Self.ruled("closed", "/**", cors: false),
        ]
        for (method, name) in [
            ("GET", "read"), ("HEAD", "read"), ("POST", "write"), ("PUT", "write"), ("OPTIONS", nil), ("DELETE", nil),
            ("BREW", nil),
        ] {
            #expect(try Self.found(routes, method) == name, "\(method)")
        }
        #expect(try compiled(routes).hasCrossOrigin)
        #expect(try !compiled([Self.ruled("a", cors: false)]).hasCrossOrigin)
    }

    @Test func `a method that no route has is for the first route with rules`() throws {
        let routes = [
            Self.ruled("plain", methods: ["PUT"], cors: false), Self.ruled("read", methods: ["GET"]),
            Self.ruled("write", methods: ["POST"]),
        ]
        #expect(try Self.found(routes, "DELETE") == "read")
        #expect(try Self.found(routes, "patch") == "read")
        #expect(try Self.found(routes, "PUT") == nil)
        #expect(try Self.found([Self.ruled("plain", methods: ["PUT"], cors: false)], "DELETE") == nil)
    }

    @Test func `without a route there is none`() throws {
        let routes = [Self.ruled("a", "/a/**", hosts: ["a.test"], methods: ["GET"])]
        #expect(try Self.found(routes, "GET", "/a/b", host: "A.test:80") == "a")
        #expect(try Self.found(routes, "DELETE", "/a/b", host: "a.test") == "a")
        for (path, host) in [("/b", "a.test"), ("/a/b", "b.test")] {
            for method in ["GET", "DELETE"] { #expect(try Self.found(routes, method, path, host: host) == nil) }
        }
    }

    @Test func `conditions count`() throws {
        let canary = RequestConditionConfiguration(.header, located("X-Canary"), .present(true))
        let version = RequestConditionConfiguration(.query, located("v"), .equals("2"))
        let routes = [
            Self.ruled("canary", methods: ["GET"], [canary]), Self.ruled("second", methods: ["GET"], [version]),
            Self.ruled("stable", methods: ["GET"], cors: false),
        ]
        #expect(try Self.found(routes, "GET", "/x?v=2") == "second")
        #expect(try Self.found(routes, "GET", "/x?v=3") == nil)
        #expect(try Self.found(routes, "PUT", "/x?v=2") == "second")
        #expect(try Self.found(routes, "PUT", "/x") == nil)
    }
}
