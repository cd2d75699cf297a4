import Foundation
import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MTLSProvider

@Suite struct `A provider of kind mtls` {
    private let authority: CertificateAuthority
    private let der: [UInt8]
    private let now: UnixTime

    init() throws {
        authority = try CertificateAuthority()
        der = try Self.bytes(of: authority.issue("client", ["DNS:api.example.com", "URI:spiffe://example.com/build"]))
        now = UnixTime(seconds: Int64(unixNow()))
    }

    /// The certificate in a PEM file, in DER.
    private static func bytes(of identity: CertificateAuthority.Issued) throws -> [UInt8] {
        let text = try String(contentsOfFile: identity.certificateFile, encoding: .utf8)
        let lines = text.split(separator: "\n").drop { !$0.contains("BEGIN CERT") }.dropFirst()
        let body = lines.prefix { !$0.contains("END CERT") }.joined()
        return try #require(Data(base64Encoded: body).map(Array.init))
    }

    private func provider(_ block: String) throws -> MTLSProvider {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(block.utf8), file: "c.yaml", environment: { _ in nil }, into: &diagnostics)
        let configuration = try #require(
            node?.decode(MTLSConfiguration.self, title: "provider 'm'", into: &diagnostics), "\(diagnostics)")
        return try MTLSProvider(configuration, context: .detached("machines", clock: .system, hasUsers: false))
    }

    private func outcome(_ block: String, _ der: [UInt8]? = nil, after seconds: Int64 = 0) throws -> String {
        let context = AuthenticationContext(now: now.advanced(bySeconds: seconds), deadline: .never)
        let provider = try provider(block)
        do throws(AuthenticationError) {
            let local = try provider.verify(Credential(certificate: der ?? self.der), in: context)
            guard case .authenticated(let identity) = local else { return "undecided" }
            return identity.providerSubject
        } catch {
            return "\(error.code) \(error.disposition)"
        }
    }

    @Test(arguments: [
        ("san_uri", "spiffe://example.com/build"), ("san_dns", "api.example.com"),
        ("san_email", "mtls.identity_missing rejected"), ("subject_dn", "CN=client"), ("subject_cn", "client"),
    ])
    func `identifies a client by one name of its certificate`(name: String, expected: String) throws {
        #expect(try outcome("identity: \(name)") == expected)
    }

    @Test func `identifies a client by the fingerprint, which is a claim in any case`() throws {
        let fingerprint = try outcome("identity: fingerprint")
        #expect(fingerprint.count == 64 && fingerprint.allSatisfy { $0.isHexDigit && !$0.isUppercase })
        let context = AuthenticationContext(now: now, deadline: .never)
        guard
            case .authenticated(let identity) = try provider("identity: san_dns").verify(
                Credential(certificate: der), in: context)
        else { throw TestFailure("undecided") }
        #expect(identity.claims == ["fingerprint": .string(fingerprint)] && identity.issuer == "machines")
        #expect(identity.expiresAt > now && identity.reusableUntil == identity.expiresAt)
    }

    @Test func `rejects what is no certificate, and one outside its dates`() throws {
        #expect(try outcome("identity: san_dns", []) == "mtls.malformed rejected")
        #expect(try outcome("identity: san_dns", [1, 2, 3]) == "mtls.malformed rejected")
        #expect(try outcome("identity: san_dns", after: 10 * 365 * 86_400) == "mtls.expired rejected")
        #expect(try outcome("identity: san_dns", after: -10 * 86_400) == "mtls.not_yet_valid rejected")
    }

    @Test func `checks the chain where it has authorities`() throws {
        let own = "identity: san_dns\nca_file: \(authority.certificateFile)"
        #expect(try outcome(own) == "api.example.com")
        let other = try CertificateAuthority()
        #expect(
            try outcome("identity: san_dns\nca_file: \(other.certificateFile)") == "mtls.untrusted rejected")
        let folder = try TemporaryFolder()
        let empty = try folder.write("nothing", to: "empty.pem")
        let error = #expect(throws: ConfigurationError.self) {
            try provider("identity: san_dns\nca_file: \(empty)")
        }
        #expect(error?.code == "certificate.ca_empty")
    }
}
