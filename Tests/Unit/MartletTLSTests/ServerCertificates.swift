import COpenSSL
import MartletCore
import MartletTesting

@testable import MartletTLS

/// Authorities and certificates shared by all tests, because their generation is slow.
struct ServerCertificates: Sendable {
    let authority: CertificateAuthority
    let stranger: CertificateAuthority
    /// For a.example.com and 127.0.0.1.
    let first: TLSIdentityFiles
    /// For b.example.com and *.wild.example.com.
    let second: TLSIdentityFiles
    /// For exact.wild.example.com, which the second one matches, too.
    let third: TLSIdentityFiles
    /// For the names of the first, with an RSA key.
    let rsa: TLSIdentityFiles
    let weak: TLSIdentityFiles
    let client: TLSIdentityFiles
    let strange: TLSIdentityFiles
    let expired: TLSIdentityFiles

    private init() throws {
        authority = try CertificateAuthority()
        stranger = try CertificateAuthority(name: "Stranger")
        let names = ["DNS:a.example.com", "IP:127.0.0.1"]
        first = Self.files(try authority.issue("first", names))
        second = Self.files(try authority.issue("second", ["DNS:B.example.com", "DNS:*.wild.example.com"]))
        third = Self.files(try authority.issue("third", ["DNS:exact.wild.example.com"]))
        rsa = Self.files(try authority.issue("rsa", names, key: .rsa(2048)))
        weak = Self.files(try authority.issue("weak", names, key: .rsa(1024)))
        client = Self.files(try authority.issue("client", ["DNS:client"]))
        strange = Self.files(try stranger.issue("strange", ["DNS:client"]))
        expired = Self.files(try authority.issue("expired", ["DNS:client"], days: -1))
    }

    static let shared = Result { try ServerCertificates() }

    static func files(_ issued: CertificateAuthority.Issued) -> TLSIdentityFiles {
        TLSIdentityFiles(certificateFile: issued.certificateFile, keyFile: issued.keyFile)
    }

    /// A client that trusts the authority.
    func context(
        _ identity: TLSIdentityFiles? = nil, _ protocols: [TLSApplicationProtocol] = []
    ) throws -> TLSClientContext {
        try TLSClientContext(
            TLSClientOptions(trust: .file(authority.certificateFile), identity: identity, protocols: protocols))
    }
}
