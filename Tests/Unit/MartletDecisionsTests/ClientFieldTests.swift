import MartletConfig
import MartletHTTP
import Testing

@testable import MartletDecisions

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

    /// Without the method overrides, and without a certificate, which no upstream ever gets.
    private static let proxyNames = ServerConfiguration.defaultStrippedHeaders.dropLast(3).filter {
        $0 != "Client-Cert"
    }

    @Test(arguments: ["Client-Cert", "client_cert", "Client-Cert-Chain", "CLIENTCERT"])
    func `a certificate is removed, whoever sends it`(_ name: String) {
        #expect(kind(name) == .own && kind(name, stripped: []) == .own && kind(name, stripped: [name]) == .own)
    }

    @Test(arguments: proxyNames)
    func `a name on the list is accepted from proxies only, in every spelling`(_ name: String) {
        for spelling in [name, name.replacing("-", with: "_"), "-" + name, name.replacing("-", with: "")] {
            #expect(kind(spelling) == .proxyOnly, "\(spelling)")
        }
    }

    @Test func `an empty list forwards them, another list replaces it`() {
        for name in ServerConfiguration.defaultStrippedHeaders where name != "Client-Cert" {
            #expect(kind(name, stripped: []) == .plain, "\(name)")
            #expect(kind(name.replacing("-", with: "_"), stripped: ["X-Other"]) == .plain, "\(name)")
        }
        #expect(kind("x.other", stripped: ["X-Other"]) == .proxyOnly)
        #expect(kind("X-Forwarded-User", stripped: []) == .proxyOnly)
        #expect(kind("X-Forwarded-Prefix", stripped: []) == .proxyOnly)
        #expect(kind("Traceparent", stripped: ["traceparent"]) == .proxyOnly)
    }

    @Test(arguments: ["X-HTTP-Method-Override", "x_http_method", "X--Method-Override"])
    func `a method override is one in every spelling`(_ name: String) { #expect(kind(name) == .methodOverride) }

    @Test(arguments: [
        "X-Real-IP", "X-Forwarded-Prefix", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Port", "Via-Whom",
    ])
    func `a field that a route sets is an identity header, whatever else it is`(_ name: String) {
        #expect(kind(name, set: [name]) == .identity)
        #expect(kind(name.replacing("-", with: "_"), set: [name]) == .identity)
    }

    @Test func `a look-alike of a field that the gateway acts on is removed`() {
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
