import MartletConfig
import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletProviderTesting
import MartletTesting
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

    @Test func `has a partner in the demo, whose signatures it accepts`() async throws {
        let folder = try TemporaryFolder()
        let site = SimulatorSite(
            url: "http://127.0.0.1:1", path: "/plugin/signed_partner/hello", folder: folder.path, clock: .system)
        let simulator = try SignedPartnerProvider.simulator(at: site)
        for (name, content) in simulator.files { try folder.write(bytes: content, to: name) }
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            JSON.write(simulator.configuration), file: "demo", environment: { _ in nil }, into: &diagnostics)
        let configuration = try #require(
            node?.decode(SignedPartnerProvider.Configuration.self, title: "provider 'p'", into: &diagnostics),
            "\(diagnostics)")
        let provider = try SignedPartnerProvider(
            configuration, context: .detached("p", clock: .system, hasUsers: false))
        let signed = try await simulator.handler(SimulatedRequest(method: "GET", path: "/signature"))
        #expect(signed.status == 200)
        func authenticate(_ method: String) async throws(AuthenticationError) -> Identity {
            let request = RequestFacts(method: method, host: "a.test", path: site.path)
            return try await provider.authenticate(
                Credential(header: signed.body),
                in: AuthenticationContext(now: Clock.system.unixTime, deadline: .never, request: request))
        }
        #expect(try await authenticate("GET").providerSubject == "acme")
        let error = await #expect(throws: AuthenticationError.self) { try await authenticate("DELETE") }
        #expect(error?.code == "signed_partner.bad_signature")
        #expect(try await simulator.handler(SimulatedRequest(method: "GET", path: "/")).status == 404)
        #expect(simulator.demonstrations.map(\.status) == [200, 401, 200])
    }
}
