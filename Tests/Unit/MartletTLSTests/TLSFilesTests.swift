import Foundation
import MartletCore
import MartletTesting
import Testing

@testable import MartletTLS

@Suite struct `Files of a TLS context` {
    private let certificates: ServerCertificates
    private let folder: TemporaryFolder

    init() throws {
        certificates = try ServerCertificates.shared.get()
        folder = try TemporaryFolder()
    }

    private func error(_ change: (inout TLSServerOptions) throws -> Void) throws -> TLSError? {
        var options = TLSServerOptions(identities: [certificates.first])
        try change(&options)
        do throws(TLSError) {
            _ = try TLSServerContext(options, tickets: TLSTicketKeys(clock: .system))
            return nil
        } catch {
            return error
        }
    }

    private func text(_ file: String) throws -> String { try String(contentsOfFile: file, encoding: .utf8) }

    @Test func `have specific errors`() throws {
        let (first, weak) = (certificates.first, certificates.weak)
        let empty = try folder.write("", to: "empty")
        let prose = try folder.write("not a certificate\n", to: "prose")
        let body = "MIIBszCCAVmgAwIBAgIUTm90IGEgY2VydGlmaWNhdGU=\n"
        let brokenCertificate = try folder.write(
            "-----BEGIN CERTIFICATE-----\n\(body)-----END CERTIFICATE-----\n", to: "broken.pem")
        let cutCertificate = try folder.write(String(try text(first.certificateFile).prefix(300)), to: "cut.pem")
        let brokenKey = try folder.write(
            "-----BEGIN PRIVATE KEY-----\n\(body)-----END PRIVATE KEY-----\n", to: "broken.key")
        let locked = folder.file("locked.key")
        let result = try run(
            try Executable.named("openssl"),
            ["pkcs8", "-topk8", "-in", first.keyFile, "-out", locked, "-passout", "pass:secret"])
        #expect(result.ending == .exited(0))
        let cases: [(String, String, ErrorCode, TLSError.Setting)] = [
            ("/nowhere", first.keyFile, .tlsCertificateUnreadable, .certificate(1)),
            ("/tmp", first.keyFile, .tlsCertificateUnreadable, .certificate(1)),
            ("/dev/zero", first.keyFile, .tlsCertificateUnreadable, .certificate(1)),
            (empty, first.keyFile, .tlsCertificateEmpty, .certificate(1)),
            (prose, first.keyFile, .tlsCertificateEmpty, .certificate(1)),
            (first.keyFile, first.keyFile, .tlsCertificateEmpty, .certificate(1)),
            (brokenCertificate, first.keyFile, .tlsCertificateInvalid, .certificate(1)),
            (cutCertificate, first.keyFile, .tlsCertificateInvalid, .certificate(1)),
            (first.certificateFile, "/nowhere", .tlsKeyUnreadable, .key(1)),
            (first.certificateFile, empty, .tlsKeyEmpty, .key(1)),
            (first.certificateFile, prose, .tlsKeyEmpty, .key(1)),
            (first.certificateFile, first.certificateFile, .tlsKeyEmpty, .key(1)),
            (first.certificateFile, brokenKey, .tlsKeyInvalid, .key(1)),
            (first.certificateFile, locked, .tlsKeyEncrypted, .key(1)),
            (first.certificateFile, certificates.second.keyFile, .tlsKeyMismatch, .key(1)),
            (weak.certificateFile, weak.keyFile, .tlsKeyWeak, .key(1)),
        ]
        for (certificate, key, code, setting) in cases {
            let files = TLSIdentityFiles(certificateFile: certificate, keyFile: key)
            let error = try error { $0.identities.append(files) }
            #expect(
                error?.code == code && error?.setting == setting,
                "\(certificate) \(key): \(String(describing: error))")
            #expect(error?.message.contains("secret") == false)
        }
    }

    @Test func `may contain certificate, chain and key together, with comments between them`() throws {
        let first = certificates.first
        let all = try folder.write(
            "# mine\n\(try text(first.keyFile))\nthe leaf\n\(try text(first.certificateFile))\n"
                + (try text(certificates.authority.certificateFile)), to: "all.pem")
        let files = TLSIdentityFiles(certificateFile: all, keyFile: all)
        #expect(try error { $0.identities = [files] } == nil)
    }

    @Test func `of authorities have specific errors`() throws {
        let broken = try folder.write(
            (try text(certificates.authority.certificateFile))
                + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", to: "broken.pem")
        let cases: [(String?, ErrorCode)] = [
            ("/nowhere", .tlsTrustUnreadable), (try folder.write("", to: "empty"), .tlsTrustEmpty),
            (certificates.first.keyFile, .tlsTrustEmpty), (broken, .tlsTrustInvalid), (nil, .tlsTrustEmpty),
        ]
        for (file, code) in cases {
            let error = try error {
                $0.clientAuthorityFile = file
                $0.clientAuthentication = .required
            }
            #expect(error?.code == code && error?.setting == .clientAuthorities)
            guard let file else { continue }
            let failure = #expect(throws: TLSError.self) {
                try TLSClientContext(TLSClientOptions(trust: .file(file)))
            }
            #expect(failure?.code == code && failure?.setting == .authorities)
        }
    }

    @Test(arguments: [
        "NONSENSE", "ECDHE-RSA-AES128-GCM-SHA256:NONSENSE", "", ":", "ECDHE-RSA-AES128-GCM-SHA256:", "@SECLEVEL=0",
        "ALL:@SECLEVEL=0", "!aNULL", "+HIGH", "-HIGH", "aNULL", "eNULL", "aNULL:eNULL",
        "TLS_NO_SUCH_THING", "ECDHE-RSA-AES128-GCM-SHA256,@SECLEVEL=0", "ECDHE-RSA-AES128-GCM-SHA256 @SECLEVEL=0",
        "ECDHE-RSA-AES128-GCM-SHA256;!ALL", "3DES",
    ])
    func `reject invalid lists of ciphers`(list: String) throws {
        let error = try error { $0.ciphers = list }
        #expect(error?.code == .tlsCipherUnknown && error?.setting == .ciphers)
    }

    @Test(arguments: ["NONSENSE", "", "TLS_AES_128_GCM_SHA256:", "TLS_AES_128_GCM_SHA256:X", "AES128-SHA"])
    func `reject invalid lists of cipher suites`(list: String) throws {
        let error = try error { $0.cipherSuites = list }
        #expect(error?.code == .tlsCipherUnknown && error?.setting == .cipherSuites)
    }
}
