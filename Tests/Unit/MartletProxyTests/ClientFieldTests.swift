import MartletConfig
import MartletHTTP
import Testing

@testable import MartletProxy

@Suite struct ClientFieldTests {
    private func kind(_ name: String, set: [String] = [], stripped: [String]? = nil) -> ClientField? {
        let table = ClientField.table(
            reserved: FieldNameSet(set, reservesAuthPrefix: true),
            stripped: stripped ?? ServerConfiguration.defaultStrippedHeaders)
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(name): x\r\nPadding-So-That-More-Follows: y\r\n\r\n".utf8)
        var parser = RequestParser(maximumHeadBytes: 1024)
        var head = RequestHead(maximumFields: 10)
        guard case .complete = parser.parse(bytes.span, into: &head) else { return nil }
        return ClientField(code: table.value(of: head.fields[1], in: bytes.span))
    }

    @Test(arguments: ServerConfiguration.defaultStrippedHeaders.dropLast(3))
    func `a name of the list is for proxies to say, in every spelling`(_ name: String) {
        for spelling in [name, name.replacing("-", with: "_"), "-" + name, name.replacing("-", with: "")] {
            #expect(kind(spelling) == .proxys, "\(spelling)")
        }
    }

    @Test func `an empty list lets them pass, another list replaces it`() {
        for name in ServerConfiguration.defaultStrippedHeaders {
            #expect(kind(name, stripped: []) == .plain, "\(name)")
            #expect(kind(name.replacing("-", with: "_"), stripped: ["X-Other"]) == .plain, "\(name)")
        }
        #expect(kind("x.other", stripped: ["X-Other"]) == .proxys)
        #expect(kind("X-Forwarded-User", stripped: []) == .proxys)
        #expect(kind("X-Forwarded-Prefix", stripped: []) == .proxys)
        #expect(kind("Traceparent", stripped: ["traceparent"]) == .proxys)
    }

    @Test(arguments: ["X-HTTP-Method-Override", "x_http_method", "X--Method-Override"])
    func `a method override is one in every spelling`(_ name: String) { #expect(kind(name) == .methodOverride) }

    @Test(arguments: [
        "X-Real-IP", "X-Forwarded-Prefix", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Port", "Via-Whom",
    ])
    func `what a route sets is the gateway's, whatever else it is`(_ name: String) {
        #expect(kind(name, set: [name]) == .identity)
        #expect(kind(name.replacing("-", with: "_"), set: [name]) == .identity)
    }

    @Test func `a look-alike of a field that is acted upon is nobody's`() {
        for name in [
            "-Authorization", "Author-ization", "X--Forwarded-For", "x_forwarded_proto", "T-E", "Con-nection",
            "Forwarded-",
        ] {
            #expect(kind(name) == .own, "\(name)")
        }
        #expect(kind("X_Request_Id") == .requestIDLookAlike)
        #expect(kind("HTTP2-Settings") == .own)
        #expect(kind("Accept") == .plain && kind("Cookie") == .plain && kind("Referer") == .plain)
    }
}
