import Foundation
import Glibc
import MartletAdmin
import MartletConfig
import MartletCore
import MartletProvider
import MartletTLS
import MartletTesting
import Testing

@testable import MartletServer

/// A folder with certificates that all tests share, because creating them is slow.
private struct Certificates: Sendable {
    let authority: CertificateAuthority
    let good: CertificateAuthority.Issued
    let other: CertificateAuthority.Issued
    let old: CertificateAuthority.Issued

    static let shared = Result { try Certificates() }

    init() throws {
        authority = try CertificateAuthority()
        good = try authority.issue("good", ["DNS:localhost"])
        other = try authority.issue("other", ["DNS:other.test"])
        old = try authority.issue("old", ["DNS:localhost"], days: -1)
    }
}

@Suite struct `TLS of a configuration` {
    private let certificates: Certificates

    init() throws { certificates = try Certificates.shared.get() }

    private func read(_ listener: String, upstream: String? = nil) -> (Blueprint?, [String]) {
        let text = """
            version: 1
            server:
              listen:
                - address: 127.0.0.1:8443
                  tls:
            \(listener.split(separator: "\n").map { "        \($0)" }.joined(separator: "\n"))
            upstreams:
              echo:
                endpoints: ["\(upstream == nil ? "builtin:echo" : "https://127.0.0.1:1")"]
            \(upstream.map { "    tls: \($0)" } ?? "")
            routes: [{ name: all, auth: none, upstream: echo }]
            """
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: "gw.yaml", registry: ProviderRegistry(), environment: { _ in nil })
        return (blueprint, diagnostics.sorted.map(\.description))
    }

    private func pair(_ certificate: String, _ key: String) -> String {
        "certificate_file: \(certificate)\nkey_file: \(key)"
    }

    @Test func `is read from its files`() throws {
        let good = certificates.good
        let (blueprint, lines) = read(
            pair(good.certificateFile, good.keyFile)
                + "\nclient_ca_file: \(certificates.authority.certificateFile)\nclient_auth: optional",
            upstream: "{ ca_file: \(certificates.authority.certificateFile) }")
        #expect(lines == [])
        let tls = try #require(blueprint?.tls)
        #expect(tls.listeners.map { $0 != nil } == [true])
        #expect(tls.upstreams.map { $0 != nil } == [true])
        #expect(tls.certificates.map(\.facts.names) == [["localhost"]])
        #expect(tls.certificates.map(\.name) == ["127.0.0.1:8443"])
    }

    @Test func `reports every unreadable file`() {
        let (_, lines) = read(
            pair("/nowhere.pem", "/nowhere.key") + "\nclient_ca_file: /nowhere.ca\nclient_auth: required",
            upstream: "{ certificate_file: /gone.pem, key_file: /gone.key, ca_file: /gone.ca }")
        let files = ["/nowhere.pem", "/nowhere.key", "/nowhere.ca", "/gone.pem", "/gone.key", "/gone.ca"]
        for file in files { #expect(lines.count { $0.contains("\(file): No such file") } == 1, "\(file) in \(lines)") }
        #expect(lines.count == files.count)
        for (code, number) in [("tls.certificate_unreadable", 2), ("tls.key_unreadable", 2), ("tls.ca_unreadable", 2)] {
            #expect(lines.count { $0.hasSuffix("[\(code)]") } == number, "\(code) in \(lines)")
        }
    }

    @Test func `warns of a private key that other users may read`() throws {
        let folder = try TemporaryFolder()
        let good = certificates.good
        for (mode, who) in [(0o640, "its group"), (0o604, "everyone"), (0o600, nil), (0o400, nil)] as [(Int, String?)] {
            let key = folder.file("key-\(mode).pem")
            try FileManager.default.copyItem(atPath: good.keyFile, toPath: key)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: key)
            // The group of a file of root's is its administrator's choice.
            if geteuid() == 0 { #expect(unsafe chown(key, 65534, 0) == 0) }
            let (blueprint, lines) = read(pair(good.certificateFile, key))
            #expect(blueprint != nil)
            #expect(lines.count == (who == nil ? 0 : 1), "\(lines)")
            if let who {
                #expect(lines[0].hasPrefix("gw.yaml:7:19: warning: ") && lines[0].hasSuffix("[config.file_exposed]"))
                #expect(lines[0].contains("is readable by \(who)"), "\(lines)")
            }
        }
    }

    @Test func `reports an error at the key that names the file`() throws {
        let (good, other) = (certificates.good, certificates.other)
        let folder = try TemporaryFolder()
        let empty = try folder.write("", to: "empty.pem")
        let cases: [(String, Int, Int, String)] = [
            (pair("/nowhere.pem", good.keyFile), 6, 27, "tls.certificate_unreadable"),
            (pair(good.certificateFile, "/nowhere.key"), 7, 19, "tls.key_unreadable"),
            (pair(good.certificateFile, other.keyFile), 7, 19, "tls.key_mismatch"),
            (pair(empty, good.keyFile), 6, 27, "tls.certificate_empty"),
            (
                pair(good.certificateFile, good.keyFile)
                    + "\ncertificates:\n  - { certificate_file: \(other.certificateFile), key_file: \(empty) }",
                9, "          - { certificate_file: \(other.certificateFile), key_file: ".utf8.count + 1,
                "tls.key_empty"
            ),
            (pair(good.certificateFile, good.keyFile) + "\nciphers: A:B", 8, 18, "tls.cipher_unknown"),
            (pair(good.certificateFile, good.keyFile) + "\ncipher_suites: A", 8, 24, "tls.cipher_unknown"),
            (
                pair(good.certificateFile, good.keyFile) + "\nclient_ca_file: \(empty)\nclient_auth: required",
                8, 25, "tls.ca_empty"
            ),
        ]
        for (listener, line, column, code) in cases {
            let (blueprint, lines) = read(listener)
            #expect(blueprint == nil && lines.count == 1)
            #expect(lines.first?.hasPrefix("gw.yaml:\(line):\(column): error: ") == true, "\(lines)")
            #expect(lines.first?.hasSuffix(" [\(code)]") == true, "\(lines)")
        }
    }

    @Test func `reports an error at the key of an upstream`() {
        let good = certificates.good
        let start = "    tls: { ca_file: ".utf8.count + 1
        for (tls, column, code) in [
            ("{ ca_file: /nowhere.pem }", start, "tls.ca_unreadable"),
            ("{ ca_file: \(good.keyFile) }", start, "tls.ca_empty"),
            (
                "{ key_file: \(certificates.other.keyFile), certificate_file: \(good.certificateFile) }", start + 1,
                "tls.key_mismatch"
            ),
        ] {
            let (blueprint, lines) = read(pair(good.certificateFile, good.keyFile), upstream: tls)
            #expect(blueprint == nil && lines.count == 1)
            #expect(lines.first?.hasPrefix("gw.yaml:11:\(column): error: ") == true, "\(lines)")
            #expect(lines.first?.hasSuffix(" [\(code)]") == true, "\(lines)")
        }
    }

    @Test func `reports an error at the store's URL, whose files are relative to the configuration`() {
        let key = certificates.good.keyFile.split(separator: "/")
        let (folder, name) = ("/" + key.dropLast().joined(separator: "/"), key.last ?? "")
        for (query, code) in [
            ("ca_file=/nowhere.pem", "tls.ca_unreadable"), ("ca_file=\(name)", "tls.ca_empty"),
            ("cert_file=\(name)&key_file=\(name)", "tls.certificate_empty"),
        ] {
            let text = """
                version: 1
                store: { url: "rediss://localhost/0?\(query)" }
                upstreams: { api: { endpoints: ["builtin:echo"] } }
                routes: [ { name: open, auth: none, upstream: api } ]

                """
            let (blueprint, diagnostics) = Blueprint.read(
                text: text, name: "\(folder)/gw.yaml", registry: ProviderRegistry(), environment: { _ in nil })
            let lines = diagnostics.sorted.map(\.description)
            #expect(blueprint == nil && lines.count == 1)
            #expect(lines.first?.hasPrefix("\(folder)/gw.yaml:2:15: error: ") == true, "\(lines)")
            #expect(lines.first?.hasSuffix(" [\(code)]") == true, "\(lines)")
        }
    }

    @Test func `errors of files beside the store's URL are at the keys that name them`() throws {
        let folder = try TemporaryFolder()
        let (empty, valid) = (try folder.write("", to: "empty.pem"), certificates.good)
        for (tls, code, column) in [
            ("ca_file: \(empty)", "tls.ca_empty", 61),
            ("certificate_file: \(empty), key_file: \(valid.keyFile)", "tls.certificate_empty", 70),
            ("key_file: \(empty), certificate_file: \(valid.certificateFile)", "tls.key_empty", 62),
        ] {
            let text = """
                version: 1
                store: { url: "rediss+cluster://localhost", tls: { \(tls) } }
                upstreams: { api: { endpoints: ["builtin:echo"] } }
                routes: [ { name: open, auth: none, upstream: api } ]

                """
            let (blueprint, diagnostics) = Blueprint.read(
                text: text, name: "gw.yaml", registry: ProviderRegistry(), environment: { _ in nil })
            let lines = diagnostics.sorted.map(\.description)
            #expect(blueprint == nil && lines.count == 1)
            #expect(lines.first?.hasPrefix("gw.yaml:2:\(column): error: ") == true, "\(lines)")
            #expect(lines.first?.hasSuffix(" [\(code)]") == true, "\(lines)")
        }
    }

    @Test func `warns of a certificate that has expired`() throws {
        let old = certificates.old
        let (blueprint, lines) = read(pair(old.certificateFile, old.keyFile))
        let certificate = try #require(blueprint?.tls.certificates.first)
        #expect(lines.count == 1)
        #expect(lines.first?.hasPrefix("gw.yaml:6:27: warning: \(old.certificateFile) expired ") == true)
        #expect(lines.first?.hasSuffix(" [tls.own_certificate_expired]") == true)
        #expect(certificate.validityError(at: Clock.system.unixTime)?.code == .certificateExpired)
    }

    @Test func `knows the validity period of a certificate`() throws {
        let good = certificates.good
        let certificate = try #require(read(pair(good.certificateFile, good.keyFile)).0?.tls.certificates.first)
        let (before, after) = (certificate.facts.notBefore, certificate.facts.notAfter)
        #expect(certificate.validityError(at: after) == nil && certificate.validityError(at: before) == nil)
        #expect(certificate.validityError(at: after.advanced(bySeconds: 1))?.code == .certificateExpired)
        #expect(certificate.validityError(at: before.advanced(bySeconds: -1))?.code == .certificateNotYetValid)
        #expect(certificate.secondsLeft(at: after.advanced(bySeconds: 5)) == -5)
    }

    @Test func `is reported to operators`() throws {
        let good = certificates.good
        let presented = try #require(read(pair(good.certificateFile, good.keyFile)).0?.tls.certificates.first)
        let before = presented.facts.notBefore.advanced(bySeconds: -1)
        let certificate = AdminReport.Certificate(presented, at: before)
        #expect(certificate.side == "listener" && certificate.name == "127.0.0.1:8443")
        #expect(certificate.file == good.certificateFile && !certificate.isValid)
        #expect(certificate.secondsLeft == presented.secondsLeft(at: before))
        #expect(AdminReport.Certificate(presented, at: presented.facts.notAfter).isValid)
    }

    @Test func `is clear text for a listener of the command line`() throws {
        let good = certificates.good
        let (blueprint, _) = read(pair(good.certificateFile, good.keyFile))
        let changed = try #require(blueprint?.listening(on: "127.0.0.1:0", Diagnostics()).0)
        #expect(changed.tls.listeners.map { $0 != nil } == [false])
        #expect(changed.tls.certificates.isEmpty)
    }
}
