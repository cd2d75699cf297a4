/// A certificate authority of the test's own, made with the openssl command; its files go away with it.
package final class CertificateAuthority: Sendable {
    /// A certificate and its key, as PEM files.
    package struct Issued: Sendable {
        package let certificateFile: String
        package let keyFile: String

        package init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    /// What kind of key a certificate is for.
    package enum Key: Sendable {
        case p256
        case rsa(Int)
    }

    private let folder: TemporaryFolder
    private let authority: Issued

    /// Makes a fresh authority.
    package init(name: String = "Martlet Test CA") throws {
        folder = try TemporaryFolder()
        authority = Issued(certificateFile: folder.file("ca.pem"), keyFile: folder.file("ca.key"))
        try CertificateAuthority.openssl(
            ["req", "-x509", "-days", "2", "-subj", "/CN=\(name)", "-out", authority.certificateFile]
                + CertificateAuthority.newKey(authority.keyFile)
                + ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"])
    }

    /// An authority whose certificate another one has issued; it must not outlive that one, which owns its files.
    package init(adopting authority: Issued) throws {
        folder = try TemporaryFolder()
        self.authority = authority
    }

    /// What a client trusts.
    package var certificateFile: String { authority.certificateFile }

    /// Issues a certificate.
    /// - Parameters:
    ///   - name: what its files are called.
    ///   - alternativeNames: such as `DNS:localhost` or `IP:127.0.0.1`.
    ///   - days: how long it is good; negative for one that has expired.
    ///   - key: the kind of its key.
    package func issue(
        _ name: String, _ alternativeNames: [String], days: Int = 1, key: Key = .p256
    ) throws -> Issued {
        try issue(
            name, subject: "/CN=\(name)",
            extensions: ["subjectAltName=\(alternativeNames.joined(separator: ","))", "basicConstraints=CA:FALSE"],
            days: days, key: key)
    }

    /// Issues a certificate with any subject and extensions.
    /// - Parameters:
    ///   - subject: in the form of the command, such as `/O=Example/CN=a`.
    ///   - extensions: lines of OpenSSL's configuration.
    package func issue(
        _ name: String, subject: String, extensions: [String], days: Int = 1, key: Key = .p256
    ) throws -> Issued {
        let issued = Issued(certificateFile: folder.file("\(name).pem"), keyFile: folder.file("\(name).key"))
        let request = folder.file("\(name).csr")
        try CertificateAuthority.openssl(
            ["req", "-utf8", "-subj", subject, "-out", request] + CertificateAuthority.newKey(issued.keyFile, key))
        let extensions = try folder.write(extensions.map { $0 + "\n" }.joined(), to: "\(name).ext")
        // No file of serial numbers: tests that run side by side share an authority, and would read it half written.
        try CertificateAuthority.openssl([
            "x509", "-req", "-in", request, "-CA", authority.certificateFile, "-CAkey", authority.keyFile,
            "-set_serial", String(UInt64.random(in: 1...UInt64.max)), "-days", String(days),
            "-extfile", extensions, "-out", issued.certificateFile,
        ])
        return issued
    }

    private static func newKey(_ file: String, _ key: Key = .p256) -> [String] {
        let kind =
            switch key {
            case .p256: ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            case .rsa(let bits): ["rsa:\(bits)"]
            }
        return ["-newkey"] + kind + ["-nodes", "-keyout", file]
    }

    /// Runs the openssl command.
    /// - Throws: unless it succeeds.
    package static func openssl(_ arguments: [String]) throws {
        let result = try run(try Executable.named("openssl"), arguments)
        guard result.ending == .exited(0) else {
            throw TestFailure("openssl \(arguments.joined(separator: " ")): \(result)")
        }
    }
}
