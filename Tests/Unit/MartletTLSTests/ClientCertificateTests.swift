import Foundation
import MartletCore
import MartletTesting
import Testing

@testable import MartletCrypto
@testable import MartletTLS

/// Certificates of clients, as DER, made once.
struct ClientCertificates: Sendable {
    let authority: CertificateAuthority
    let intermediate: CertificateAuthority
    /// With one name of each kind.
    let full: [UInt8]
    /// With two names of each kind.
    let several: [UInt8]
    /// With a subject, and no other name.
    let bare: [UInt8]
    /// Without a subject, for other alternative names.
    let anonymous: [UInt8]
    /// For servers only.
    let server: [UInt8]
    /// For clients, from the intermediate authority.
    let below: [UInt8]

    static let shared = Result { try ClientCertificates() }

    private init() throws {
        authority = try CertificateAuthority()
        let constraints = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"]
        intermediate = try CertificateAuthority(
            adopting: authority.issue("sub", subject: "/CN=Sub", extensions: constraints))
        full = try Self.der(
            authority.issue(
                "full", subject: "/C=DE/O=Example, Inc./OU=CI+L=B/CN=Build Box",
                extensions: [
                    "subjectAltName=DNS:Build.example.com,URI:spiffe://example.com/ci/build,email:ci@example.com,"
                        + "IP:127.0.0.1,otherName:1.2.3.4;UTF8:other"
                ]))
        several = try Self.der(
            authority.issue(
                "several", subject: "/CN=one/CN=two",
                extensions: [
                    "subjectAltName=DNS:a.example.com,DNS:b.example.com,URI:spiffe://a/1,URI:spiffe://a/2,"
                        + "email:a@example.com,email:a@example.com"
                ]))
        bare = try Self.der(authority.issue("bare", subject: "/O=Zo\u{eb} & Co/CN=Zo\u{eb}", extensions: []))
        anonymous = try Self.der(
            authority.issue("anonymous", subject: "/", extensions: ["subjectAltName=critical,IP:127.0.0.1"]))
        server = try Self.der(
            authority.issue("server", subject: "/CN=server", extensions: ["extendedKeyUsage=serverAuth"]))
        below = try Self.der(
            intermediate.issue("below", subject: "/CN=below", extensions: ["extendedKeyUsage=clientAuth"]))
    }

    static func der(_ issued: CertificateAuthority.Issued) throws -> [UInt8] { try der(issued.certificateFile) }

    static func der(_ file: String) throws -> [UInt8] {
        let text = try String(contentsOfFile: file, encoding: .utf8)
        let lines = text.split(separator: "\n").drop { !$0.hasPrefix("-----BEGIN") }.dropFirst()
        let body = lines.prefix { !$0.hasPrefix("-----END") }.joined()
        guard let der = Base64.decode(Array(body.utf8)[...], padding: .required) else { throw TestFailure("not PEM") }
        return der
    }
}

@Suite struct ClientCertificateTests {
    private let certificates: ClientCertificates

    init() throws { certificates = try ClientCertificates.shared.get() }

    /// The identity, or the code of the error.
    private func identity(_ der: [UInt8], _ kind: ClientIdentityKind) throws -> String {
        let certificate = try ClientCertificate(der: der)
        do throws(ClientCertificateError) { return try certificate.identity(kind) } catch {
            return error.code.rawValue.replacing("certificate.identity_", with: "!")
        }
    }

    @Test func `has one identity of each kind`() throws {
        let expected: [(ClientIdentityKind, String)] = [
            (.sanURI, "spiffe://example.com/ci/build"), (.sanDNS, "build.example.com"), (.sanEmail, "ci@example.com"),
            (.subjectCN, "Build Box"), (.subjectDN, "CN=Build Box,OU=CI+L=B,O=Example\\, Inc.,C=DE"),
        ]
        for (kind, name) in expected { #expect(try identity(certificates.full, kind) == name) }
        #expect(try identity(certificates.bare, .subjectCN) == "Zo\u{eb}")
        #expect(try identity(certificates.bare, .subjectDN) == "CN=Zo\\C3\\AB,O=Zo\\C3\\AB & Co")
    }

    @Test func `has the fingerprint that the openssl command computes`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(bytes: certificates.full, to: "c.der")
        let result = try run(
            try Executable.named("openssl"),
            [
                "x509", "-inform", "DER", "-in", file, "-noout", "-fingerprint", "-sha256", "-subject", "-nameopt",
                "RFC2253",
            ])
        let certificate = try ClientCertificate(der: certificates.full)
        let hexadecimal = certificate.fingerprint
        #expect(hexadecimal.utf8.count == 64 && hexadecimal == hexadecimal.lowercased())
        #expect(result.output.lowercased().replacing(":", with: "").contains("fingerprint=\(hexadecimal)\n"))
        #expect(result.output.contains("subject=\(try certificate.identity(.subjectDN))\n"))
        #expect(try identity(certificates.full, .fingerprint) == hexadecimal)
        let digest = try #require(Base64URL.decode(certificate.thumbprint))
        #expect(digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() == hexadecimal)
    }

    @Test func `has no identity without a name of its kind, or with several`() throws {
        for kind in [ClientIdentityKind.sanURI, .sanDNS, .sanEmail, .subjectCN] {
            #expect(try identity(certificates.several, kind) == "!ambiguous")
            #expect(try identity(certificates.anonymous, kind) == "!missing")
        }
        #expect(try identity(certificates.several, .subjectDN) == "CN=two,CN=one")
        #expect(try identity(certificates.anonymous, .subjectDN) == "!missing")
        #expect(try identity(certificates.anonymous, .fingerprint).utf8.count == 64)
        for kind in [ClientIdentityKind.sanURI, .sanDNS, .sanEmail] {
            #expect(try identity(certificates.bare, kind) == "!missing")
        }
    }

    /// A certificate with other bytes in a name; the signature, which is not verified here, no longer fits.
    private func changed(_ der: [UInt8], _ text: String, to other: [UInt8]) throws -> [UInt8] {
        let text = Array(text.utf8)
        #expect(text.count == other.count)
        var der = der
        let found = der.indices.filter { der[$0...].starts(with: text) }
        #expect(!found.isEmpty)
        for start in found { der.replaceSubrange(start..<(start + text.count), with: other) }
        return der
    }

    @Test(arguments: [
        ("Build.example.com", "Buil\u{0}.example.com", "!control_character"),
        ("Build.example.com", "*.ild.example.com", "!wildcard"),
        ("Build.example.com", "Bu*ld.example.com", "!wildcard"),
        ("Build.example.com", "Build..xample.com", "!malformed"),
        ("Build.example.com", ".uild.example.com", "!malformed"),
        ("Build.example.com", "Build.example.co.", "!malformed"),
        ("Build.example.com", "Build example.com", "!malformed"),
        ("Build.example.com", "Bu/ld.example.com", "!malformed"),
        ("Build.example.com", "Bui_d-example.com", "bui_d-example.com"),
        ("Build.example.com", "Buil\u{e9}example.com", "!not_text"),
        ("Build.example.com", "Build.example.co\n", "!control_character"),
    ])
    func `has a host name that is one`(name: String, other: String, expected: String) throws {
        #expect(try identity(changed(certificates.full, name, to: Array(other.utf8)), .sanDNS) == expected)
    }

    @Test func `has other names that are of their kind`() throws {
        let cases: [(ClientIdentityKind, String, String, String)] = [
            (.sanURI, "spiffe://example.com", "spiffe:/\u{0}example.com", "!control_character"),
            (.sanURI, "spiffe://example.com", "spiffe://example com", "!malformed"),
            (.sanURI, "spiffe://example.com", "//spiffe/example.com", "!malformed"),
            (.sanURI, "spiffe://example.com", "1piffe://example.com", "!malformed"),
            (.sanURI, "spiffe://example.com", "sp ffe://example.com", "!malformed"),
            (.sanURI, "spiffe://example.com", "spiff\u{e9}//example.com", "!not_text"),
            (.sanEmail, "ci@example.com", "ci.example.com", "!malformed"),
            (.sanEmail, "ci@example.com", "ci@example@com", "!malformed"),
            (.sanEmail, "ci@example.com", "@ci.exampl.com", "!malformed"),
            (.sanEmail, "ci@example.com", "c @example.com", "!malformed"),
            (.sanEmail, "ci@example.com", "ci@example\u{0}com", "!control_character"),
            (.subjectCN, "Build Box", "Build\u{0}Box", "!control_character"),
            (.subjectCN, "Build Box", "Buil\u{85}Box", "!control_character"),
            (.subjectCN, "Build Box", "Build\u{7F}Box", "!control_character"),
            (.subjectDN, "Build Box", "Build\u{0}Box", "!control_character"),
            (.subjectDN, "Build Box", "Build\nBox", "!control_character"),
            (.subjectDN, "Example, Inc.", "Example\u{7F} Inc.", "!control_character"),
            (.subjectCN, "Example, Inc.", "Example\u{7F} Inc.", "Build Box"),
            (.subjectDN, "Build Box", "#uild+Box", "CN=\\#uild\\+Box,OU=CI+L=B,O=Example\\, Inc.,C=DE"),
        ]
        for (kind, name, other, expected) in cases {
            let der = try changed(certificates.full, name, to: Array(other.utf8))
            #expect(try identity(der, kind) == expected, "\(kind) \(other)")
        }
        // OpenSSL reads no subject that is not valid in its encoding.
        let broken = try changed(certificates.full, "Build Box", to: Array("Buil".utf8) + [0xFF] + Array(" Box".utf8))
        #expect(throws: ClientCertificateError(.certificateMalformed, "")) { try ClientCertificate(der: broken) }
        let latin = try changed(
            certificates.full, "ci@example.com", to: Array("c".utf8) + [0xE9] + Array("@example.com".utf8))
        #expect(try identity(latin, .sanEmail) == "!not_text")
    }

    @Test func `limits the length of a name`() throws {
        let path = String(repeating: "a", count: 255 - "spiffe://example.com/".utf8.count)
        let long = "spiffe://example.com/" + path
        #expect(try ClientIdentityKind.sanURI.identity(Array(long.utf8)) == long)
        let code = ClientCertificateError(.certificateIdentityTooLong, "")
        #expect(throws: code) { try ClientIdentityKind.sanURI.identity(Array((long + "a").utf8)) }
        #expect(throws: code) { try ClientIdentityKind.subjectCN.identity([UInt8](repeating: 0x61, count: 256)) }
        #expect(throws: ClientCertificateError(.certificateIdentityMalformed, "")) {
            try ClientIdentityKind.subjectCN.identity([])
        }
        let label = String(repeating: "a", count: 64)
        #expect(throws: ClientCertificateError(.certificateIdentityMalformed, "")) {
            try ClientIdentityKind.sanDNS.identity(Array("\(label).example".utf8))
        }
    }

    @Test func `is exactly one certificate in DER`() throws {
        let der = certificates.full
        var indefinite = der
        indefinite[1] = 0x80
        for bad in [
            [], [0x30], [0x30, 0x00], Array(der.dropLast()), der + [0], der + der, indefinite, Array("-----BEGIN".utf8),
        ] {
            #expect(throws: ClientCertificateError(.certificateMalformed, "")) { try ClientCertificate(der: bad) }
        }
        #expect(throws: ClientCertificateError(.certificateTooLarge, "")) {
            try ClientCertificate(der: [UInt8](repeating: 0x30, count: ClientCertificate.maximumBytes + 1))
        }
        // The same certificate with a length in more bytes than needed is BER, and has another digest.
        #expect(der[1] == 0x82)
        #expect(throws: ClientCertificateError(.certificateMalformed, "")) {
            try ClientCertificate(der: [0x30, 0x83, 0x00] + der[2...])
        }
    }

    @Test func `is valid between its dates`() throws {
        let certificate = try ClientCertificate(der: certificates.full)
        #expect(certificate.notAfter == certificate.notBefore.advanced(bySeconds: 86_400))
        try certificate.checkDates(at: certificate.notBefore)
        try certificate.checkDates(at: certificate.notAfter)
        #expect(throws: ClientCertificateError(.certificateNotYetValid, "")) {
            try certificate.checkDates(at: certificate.notBefore.advanced(bySeconds: -1))
        }
        #expect(throws: ClientCertificateError(.certificateExpired, "")) {
            try certificate.checkDates(at: certificate.notAfter.advanced(bySeconds: 1))
        }
    }

    @Test func `is that of the connection`() throws {
        let shared = try ServerCertificates.shared.get()
        var options = TLSServerOptions(identities: [shared.first])
        options.clientAuthentication = .optional
        options.clientAuthorityFile = shared.authority.certificateFile
        let server = try TLSServerContext(options, tickets: TLSTicketKeys(clock: .system))
        let client = try shared.context(shared.client)
        for isResumed in [false, true] {
            var pair = try EnginePair(client.makeEngine(serverName: "a.example.com"), server.makeEngine())
            pair.exchange()
            let found = pair.server.engine.peerCertificate
            let wasResumed = pair.server.engine.isResumed
            #expect(try found == ClientCertificates.der(shared.client.certificateFile) && wasResumed == isResumed)
        }
        var pair = try EnginePair(shared.context().makeEngine(serverName: "a.example.com"), server.makeEngine())
        pair.exchange()
        let (found, isEstablished) = (pair.server.engine.peerCertificate, pair.areEstablished)
        #expect(found == nil && isEstablished)
    }
}
