import MartletCore
import MartletProvider
import MartletProviderTesting
import Testing

@testable import SignedProvider

@Suite struct `A provider of kind signed conforms` {
    @Test func `to what the gateway expects`() async throws {
        let signed = Bench.signed()
        var conformance = ProviderConformance(clock: Bench.clock) { try Bench.provider() }
        conformance.accepted = [signed.credential]
        conformance.rejected = [Bench.signed(parameters: #";created=1700000000;keyid="acme""#).credential]
        // The head has the credential; the signature stays that of the valid one.
        conformance.request = { credential in
            var request = signed
            request.fields[0].1 = credential.withBytes { String(decoding: $0, as: UTF8.self) }
            return request.context().request ?? RequestFacts(method: "", host: "", path: "")
        }
        let report = await conformance.run()
        print("conformance signed: \(report)")
        #expect(report.passes, "\(report)")
        #expect(report.calls[.random] == 10_000)
    }
}
