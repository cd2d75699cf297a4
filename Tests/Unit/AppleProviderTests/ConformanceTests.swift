import AppleProvider
import MartletCore
import MartletProvider
import MartletProviderTesting
import MartletTesting
import Testing

@Suite struct `Apple's provider conforms` {
    @Test func `to what the gateway expects`() async throws {
        let document = try Bench.document()
        var conformance = ProviderConformance(clock: Bench.clock) { try Bench(document: document).provider }
        conformance.accepted = [Credential(bearer: Array(try Bench.token().utf8))]
        conformance.rejected = [
            Credential(bearer: Array(try Bench.token { $0.claims["aud"] = "\"com.example.other\"" }.utf8)),
            Credential(bearer: Array(try Bench.token { $0.claims["exp"] = "1" }.utf8)),
        ]
        conformance.makeUnavailable = {
            let bench = try Bench(document: document)
            bench.issuer.respond(with: nil)
            return bench.provider
        }
        let report = await conformance.run()
        print("conformance apple: \(report)")
        #expect(report.passes, "\(report)")
        #expect(report.calls[.random] == 10_000 && (report.calls[.changed] ?? 0) > 30)
    }
}
