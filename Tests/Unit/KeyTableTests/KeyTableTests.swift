import KeyTable
import MartletConfig
import MartletCore
import MartletCrypto
import MartletProvider
import MartletProviderTesting
import MartletTesting
import Testing

@Suite struct `The example of a table of keys` {
    private static func diagnostics(_ block: String) -> (KeyTableProvider.Configuration?, String) {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(block.utf8), file: "c.yaml", environment: { _ in nil }, into: &diagnostics)
        let decoded = node?.decode(KeyTableProvider.Configuration.self, title: "provider 'k'", into: &diagnostics)
        if let decoded { KeyTableProvider.validate(decoded, into: &diagnostics) }
        return (decoded, diagnostics.description)
    }

    @Test func `does what the gateway expects of every provider`() async throws {
        let digest = Hexadecimal.text(SHA256.digest(Array("key-of-ada".utf8)))
        let (configuration, _) = Self.diagnostics("keys: [{ subject: ada, sha256: \(digest) }]")
        let decoded = try #require(configuration)
        var conformance = ProviderConformance(clock: .system) {
            try KeyTableProvider(decoded, context: .detached("keys", clock: .system, hasUsers: false))
        }
        conformance.accepted = [Credential(header: Array("key-of-ada".utf8))]
        conformance.rejected = [Credential(header: Array("key-of-bob".utf8))]
        let report = await conformance.run()
        #expect(report.passes, "\(report)")
    }

    @Test func `names a digest that is none`() {
        #expect(
            Self.diagnostics("keys: [{ subject: ada, sha256: abc }]").1.contains("c.yaml:1:32: error: sha256: must be"))
    }
}
