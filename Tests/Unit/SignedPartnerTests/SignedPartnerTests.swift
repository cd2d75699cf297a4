import MartletConfig
import MartletCore
import MartletCrypto
import MartletProvider
import MartletProviderTesting
import SignedPartner
import Testing

@Suite struct `The example of a partner's signatures` {
    private let provider: SignedPartnerProvider
    private let now = Clock.system.unixTime

    init() throws {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array("subject: acme\nsecret: s3cret".utf8), file: "c.yaml", environment: { _ in nil }, into: &diagnostics)
        let configuration = try #require(
            node?.decode(SignedPartnerProvider.Configuration.self, title: "provider 'p'", into: &diagnostics))
        provider = try SignedPartnerProvider(configuration, context: .detached("p", clock: .system, hasUsers: false))
    }

    private func signature(_ method: String, _ path: String, age: Int64 = 0) -> String {
        let time = now.seconds - age
        let code = HMACSHA256.authenticate(Array("\(time) \(method) \(path)".utf8), key: Secret("s3cret"))
        return "\(time) \(Hexadecimal.text(code))"
    }

    @Test func `does what the gateway expects of every provider`() async throws {
        let (provider, now) = (provider, now)
        // A time that stands still: signatures expire, and the suite may take longer on a loaded machine.
        let clock = Clock(unixTime: { now }, monotonicTime: { Clock.system.monotonicTime })
        var conformance = ProviderConformance(clock: clock) { provider }
        conformance.accepted = [Credential(header: Array(signature("GET", "/").utf8))]
        conformance.rejected = [
            Credential(header: Array(signature("POST", "/").utf8)),
            Credential(header: Array(signature("GET", "/a").utf8)),
            Credential(header: Array(signature("GET", "/", age: 60).utf8)),
            Credential(header: Array(signature("GET", "/", age: -10).utf8)),
        ]
        let report = await conformance.run()
        #expect(report.passes, "\(report)")
    }
}
