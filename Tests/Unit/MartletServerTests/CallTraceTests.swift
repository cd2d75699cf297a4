import MartletCore
import MartletTracing
import Testing

@testable import MartletServer

@Suite struct `The span of a call` {
    private func attributes(_ url: String, socket: String? = nil) -> [String: SpanValue] {
        let call = HTTPCall(url, socket: socket, timeout: .seconds(1), maximumBytes: 1)
        return Dictionary(uniqueKeysWithValues: call.spanAttributes.map { ($0.name, $0.value) })
    }

    @Test(arguments: [
        (
            "https://api.example.com/sns/userinfo?secret=1&code=2", "https://api.example.com/sns/userinfo",
            "api.example.com", 443
        ),
        ("http://127.0.0.1:19600/token", "http://127.0.0.1:19600/token", "127.0.0.1", 19_600),
        ("https://[::1]:8443/a#secret", "https://[::1]:8443/a", "::1", 8443),
        ("https://[2001:db8::1]/", "https://[2001:db8::1]/", "2001:db8::1", 443),
        ("HTTPS://user:secret@a.example?secret", "https://a.example", "a.example", 443),
        ("http://a.example:80/b@c?secret", "http://a.example:80/b@c", "a.example", 80),
    ])
    func `names the service and the path, without query and credentials`(
        url: String, full: String, host: String, port: Int
    ) {
        let attributes = attributes(url)
        #expect(attributes["url.full"] == .text(full))
        #expect(attributes["server.address"] == .text(host) && attributes["server.port"] == .number(port))
        #expect(attributes["http.request.method"] == .text("GET"))
        #expect(!"\(attributes)".contains("secret"))
    }

    @Test func `names the socket of a service that has one`() {
        let attributes = attributes("http://localhost/verify?a", socket: "/run/verify.sock")
        #expect(attributes["server.address"] == .text("/run/verify.sock") && attributes["server.port"] == nil)
        #expect(attributes["url.full"] == .text("http://localhost/verify"))
    }

    @Test(arguments: ["", "x", "://", "http://", "https://:"]) func `has any parts of what is no URL`(url: String) {
        #expect(attributes(url)["http.request.method"] == .text("GET"))
    }
}
