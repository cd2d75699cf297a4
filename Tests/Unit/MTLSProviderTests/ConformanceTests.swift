import Foundation
import MartletConfig
import MartletCore
import MartletProvider
import MartletProviderTesting
import MartletTesting
import Testing

@testable import MTLSProvider

@Suite struct `A provider of kind mtls conforms` {
    @Test func `to what the gateway expects`() async throws {
        let (authority, other) = (try CertificateAuthority(), try CertificateAuthority())
        let block = "identity: san_dns\nca_file: \(authority.certificateFile)"
        var conformance = ProviderConformance(clock: .system) {
            var diagnostics = Diagnostics()
            let node = ConfigurationNode.parse(
                Array(block.utf8), file: "c.yaml", environment: { _ in nil }, into: &diagnostics)
            guard let configuration = node?.decode(MTLSConfiguration.self, title: "m", into: &diagnostics) else {
                throw TestFailure("\(diagnostics)")
            }
            return try MTLSProvider(configuration, context: .detached("m", clock: .system, hasUsers: false))
        }
        conformance.accepted = [Credential(certificate: try Self.der(authority.issue("a", ["DNS:a"])))]
        conformance.rejected = [
            Credential(certificate: try Self.der(other.issue("a", ["DNS:a"]))),
            Credential(certificate: try Self.der(authority.issue("a", ["DNS:*.a"]))),
            Credential(certificate: try Self.der(authority.issue("a", ["DNS:a", "DNS:b"]))),
            Credential(certificate: try Self.der(authority.issue("a", ["URI:a:b"]))),
        ]
        let report = await conformance.run()
        print("conformance mtls: \(report)")
        #expect(report.passes, "\(report)")
    }

    private static func der(_ issued: CertificateAuthority.Issued) throws -> [UInt8] {
        let text = try String(contentsOfFile: issued.certificateFile, encoding: .utf8)
        let lines = text.split(separator: "\n").drop { !$0.contains("BEGIN CERT") }.dropFirst()
        return try #require(Data(base64Encoded: lines.prefix { !$0.contains("END CERT") }.joined()).map(Array.init))
    }
}
