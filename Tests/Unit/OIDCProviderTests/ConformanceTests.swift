import MartletCore
import MartletProvider
import MartletProviderTesting
import MartletTesting
import OIDCProvider
import Testing

@Suite struct `A provider of kind oidc conforms` {
    @Test func `to what the gateway expects`() async throws {
        let time = TestTime()
        var conformance = ProviderConformance(clock: time.clock) { try Bench(time: time).provider }
        conformance.accepted = [Credential(bearer: Array(try Bench.token().utf8))]
        conformance.rejected = [
            Credential(bearer: Array(try Bench.token { $0.claims["aud"] = "\"other\"" }.utf8)),
            Credential(bearer: Array(try Bench.token { $0.claims["cnf"] = "{}" }.utf8)),
        ]
        conformance.makeUnavailable = {
            let issuer = try ScriptedIssuer()
            issuer.setKeys([])
            issuer.respond(at: ScriptedIssuer.discoveryURL, 503, [])
            return try Bench(issuer: issuer, time: time).provider
        }
        let report = await conformance.run()
        print("conformance oidc: \(report)")
        #expect(report.passes, "\(report)")
        #expect(report.calls[.random] == 10_000 && (report.calls[.changed] ?? 0) > 30)
    }
}
