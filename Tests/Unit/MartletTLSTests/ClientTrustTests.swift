import Foundation
import MartletCore
import MartletTesting
import Testing

@testable import MartletCrypto
@testable import MartletTLS

@Suite struct ClientTrustTests {
    private let certificates: ClientCertificates
    private let trust: ClientTrust

    init() throws {
        certificates = try ClientCertificates.shared.get()
        trust = try ClientTrust(pem: Self.read(certificates.authority.certificateFile))
    }

    /// The code with which a certificate is rejected, an hour or so after it was issued.
    private func code(
        _ der: [UInt8], _ intermediates: [[UInt8]] = [], after seconds: Int64 = 3600, _ other: ClientTrust? = nil
    ) throws -> ErrorCode? {
        let certificate = try ClientCertificate(der: der)
        do throws(ClientCertificateError) {
            try (other ?? trust).verify(
                certificate, intermediates: intermediates, at: certificate.notBefore.advanced(bySeconds: seconds))
            return nil
        } catch { return error.code }
    }

    @Test func `accepts certificates of the authority for clients`() throws {
        #expect(try code(certificates.full) == nil)
        #expect(try code(certificates.bare) == nil)
        #expect(try code(certificates.server) == .certificateWrongPurpose)
    }

    @Test func `follows a chain through intermediates`() throws {
        let intermediate = try ClientCertificates.der(certificates.intermediate.certificateFile)
        #expect(try code(certificates.below) == .certificateUntrusted)
        #expect(try code(certificates.below, [intermediate]) == nil)
        #expect(try code(certificates.below, [certificates.bare, intermediate]) == nil)
        #expect(try code(certificates.below, [certificates.full]) == .certificateUntrusted)
        #expect(try code(certificates.below, [intermediate, [0x30]]) == .certificateMalformed)
        let most = [[UInt8]](repeating: intermediate, count: ClientTrust.maximumDepth)
        #expect(try code(certificates.below, most) == nil)
        #expect(try code(certificates.below, most + [intermediate]) == .certificateUntrusted)
        // An intermediate authority alone is no anchor, and a client's certificate is no authority.
        let below = try ClientTrust(pem: Self.read(certificates.intermediate.certificateFile))
        #expect(try code(certificates.below, below) == .certificateUntrusted)
    }

    private func code(_ der: [UInt8], _ other: ClientTrust) throws -> ErrorCode? { try code(der, [], other) }

    @Test func `rejects certificates outside their validity`() throws {
        #expect(try code(certificates.full, after: 0) == nil)
        #expect(try code(certificates.full, after: 86_400 + 1) == .certificateExpired)
        #expect(try code(certificates.full, after: -86_400) == .certificateNotYetValid)
    }

    @Test func `rejects certificates of others, of themselves, and forged ones`() throws {
        let shared = try ServerCertificates.shared.get()
        #expect(try code(ClientCertificates.der(shared.strange.certificateFile)) == .certificateUntrusted)
        let namesake = try CertificateAuthority()
        let forged = try ClientCertificates.der(namesake.issue("forged", ["DNS:client"]))
        #expect(try code(forged) == .certificateUntrusted)
        let root = try ClientCertificates.der(namesake.certificateFile)
        #expect(try code(forged, [root]) == .certificateUntrusted)
        #expect(try code(root) == .certificateUntrusted)
        var changed = certificates.full
        let last = changed.count - 1
        changed[last] ^= 1
        #expect(try code(changed) == .certificateUntrusted)
        let weak = try ClientCertificates.der(certificates.authority.issue("weak", ["DNS:weak"], key: .rsa(1024)))
        #expect(try code(weak) == .certificateUntrusted)
    }

    @Test func `needs authorities`() throws {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        let good = String(decoding: try Self.read(certificates.authority.certificateFile), as: UTF8.self)
        for (text, expected) in [
            ("", ErrorCode.certificateAuthorityMissing), ("no certificate\n", .certificateAuthorityMissing),
            (broken, .certificateAuthorityInvalid), (good + broken, .certificateAuthorityInvalid),
        ] {
            let failure = #expect(throws: ClientCertificateError.self) { try ClientTrust(pem: Array(text.utf8)) }
            #expect(failure?.code == expected)
        }
        #expect(throws: Never.self) { try ClientTrust(pem: Array("text\n\(good)\(good)more text".utf8)) }
    }

    private static func read(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }
}
