import Testing

@testable import MartletConfig

/// Names that end with the dot of the root, so that resolvers try no other domains (`ndots`).
@Suite struct FinalDotTests {
    @Test(arguments: [
        ("api.svc.cluster.local.", "api.svc.cluster.local."), ("API.Example.com.:8080", "api.example.com."),
        ("localhost.", "localhost."), (".", nil), ("a..", nil), ("127.0.0.1.", nil), ("[::1].", nil), ("1.", nil),
    ])
    func `may be those of upstreams and issuers`(_ text: String, _ host: String?) {
        #expect(HostAndPort.parse(Array(text.utf8), allowingFinalDot: true)?.host == host)
        #expect(HostAndPort.parse(Array(text.utf8)) == nil)
        #expect(URLText("https://\(text)/keys")?.host == host)
    }
}
