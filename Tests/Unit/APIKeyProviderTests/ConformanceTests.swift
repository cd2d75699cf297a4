import MartletCore
import MartletProvider
import MartletProviderTesting
import MartletTesting
import Testing

@testable import APIKeyProvider

@Suite struct `A provider of kind api_key conforms` {
    @Test func `to what the gateway expects`() async throws {
        let bench = try Bench()
        let (_, valid) = try await bench.issue()
        let (record, revoked) = try await bench.issue("gone")
        _ = try await bench.store.revoke(record.id, at: bench.time.now)
        var conformance = ProviderConformance(clock: bench.time.clock) { bench.provider }
        conformance.accepted = [Credential(bearer: Array(valid.utf8)), Credential(header: Array(valid.utf8))]
        conformance.rejected = [Credential(bearer: Array(revoked.utf8))]
        conformance.log = { bench.log.text }
        let report = await conformance.run()
        print("conformance api_key: \(report)")
        #expect(report.passes, "\(report)")
        #expect(report.calls[.random] == 10_000)
    }
}
