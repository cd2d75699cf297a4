import COpenSSL
import MartletCore
import MartletTesting
import Testing

@testable import MartletTLS

extension EnginePeer {
    /// A client that has begun its handshake.
    fileprivate init(client engine: consuming TLSEngine) throws(TLSError) {
        var engine = engine
        try engine.start()
        self.init(engine)
    }

    /// Passes bytes in both directions until neither side has output.
    fileprivate mutating func talk(with server: ServerSide, pieces: Int = .max) throws(TLSError) {
        while true {
            let sent = output()
            server.receive(sent)
            let reply = server.output()
            if sent.isEmpty, reply.isEmpty { return }
            try receive(reply, pieces: pieces)
        }
    }

    fileprivate var isEstablished: Bool { engine.isEstablished }
    fileprivate var isPeerClosed: Bool { engine.isPeerClosed }
}

/// One authority and its certificates, shared by all tests, because their generation is slow.
private struct Certificates: Sendable {
    let authority: CertificateAuthority
    let stranger: CertificateAuthority
    let good: CertificateAuthority.Issued
    let client: CertificateAuthority.Issued

    init() throws {
        authority = try CertificateAuthority()
        stranger = try CertificateAuthority(name: "Stranger")
        good = try authority.issue(
            "good", ["DNS:redis.example.com", "DNS:*.wild.example.com", "IP:127.0.0.1", "IP:::1"])
        client = try authority.issue("client", ["DNS:client"])
    }

    static let shared = Result { try Certificates() }

    func context(_ identity: TLSClientOptions.Identity? = nil) throws -> TLSClientContext {
        try TLSClientContext(TLSClientOptions(trust: .file(authority.certificateFile), identity: identity))
    }
}

@Suite struct TLSEngineTests {
    private let certificates: Certificates

    init() throws { certificates = try Certificates.shared.get() }

    @Test(arguments: [1, 7, 500, Int.max], [TLS1_2_VERSION, TLS1_3_VERSION])
    func `completes the handshake and transfers data, however it is split`(pieces: Int, version: Int32) throws {
        let server = try ServerSide(certificates.good, maximumVersion: version)
        var client = try EnginePeer(client: try certificates.context().makeEngine(serverName: "redis.example.com"))
        try client.send(Array("before ".utf8))
        try client.talk(with: server, pieces: pieces)
        let isEstablished = client.isEstablished
        #expect(isEstablished && server.isEstablished && server.serverName == "redis.example.com")
        let long = [UInt8](repeating: 65, count: 100_000)
        try client.send(long)
        server.send(long)
        try client.talk(with: server, pieces: pieces)
        #expect(server.received == Array("before ".utf8) + long)
        #expect(client.plaintext.array == long)
        server.sendCloseNotify()
        try client.talk(with: server, pieces: pieces)
        let isClosed = client.isPeerClosed
        #expect(isClosed)
        #expect(client.engine.version == (version == TLS1_3_VERSION ? "TLSv1.3" : "TLSv1.2"))
    }

    @Test(arguments: ["redis.example.com", "REDIS.example.com", "a.wild.example.com", "127.0.0.1", "::1"])
    func `accepts a certificate that names the server`(name: String) throws {
        let server = try ServerSide(certificates.good)
        var client = try EnginePeer(client: try certificates.context().makeEngine(serverName: name))
        try client.talk(with: server)
        let isEstablished = client.isEstablished
        #expect(isEstablished)
        let isAddress = name.contains(":") || name == "127.0.0.1"
        #expect(server.serverName == (isAddress ? nil : name))
    }

    @Test(arguments: [
        "example.com", "other.example.com", "a.b.wild.example.com", "wild.example.com", "127.0.0.2", "::2",
        "good", "redis.example.com.evil.org",
    ])
    func `rejects a certificate for another name`(name: String) throws {
        let server = try ServerSide(certificates.good)
        var client = try EnginePeer(client: try certificates.context().makeEngine(serverName: name))
        #expect(code { () throws(TLSError) in try client.talk(with: server) } == .tlsNameMismatch)
        // The alert can still be dequeued; the engine cannot be used otherwise.
        let alert = client.output()
        #expect(!alert.isEmpty)
        #expect(code { () throws(TLSError) in try client.send([1]) } == .tlsProtocolError)
        let isEstablished = client.isEstablished
        #expect(!isEstablished)
    }

    @Test func `rejects untrusted certificates, expired certificates and old versions`() throws {
        let names = ["DNS:redis.example.com"]
        let cases: [(ServerSide, ErrorCode)] = [
            (try ServerSide(try certificates.stranger.issue("s", names)), .tlsCertificateUntrusted),
            (try ServerSide(try certificates.authority.issue("old", names, days: -1)), .tlsCertificateExpired),
            (try ServerSide(certificates.good, maximumVersion: TLS1_1_VERSION), .tlsVersionUnsupported),
        ]
        for (server, expected) in cases {
            var client = try EnginePeer(client: try certificates.context().makeEngine(serverName: "redis.example.com"))
            #expect(code { () throws(TLSError) in try client.talk(with: server) } == expected)
        }
    }

    @Test func `trusts only the system's authorities, or any certificate, if configured`() throws {
        let server = try ServerSide(certificates.good)
        var client = try EnginePeer(
            client: try TLSClientContext(TLSClientOptions(trust: .system)).makeEngine(serverName: "redis.example.com"))
        #expect(code { () throws(TLSError) in try client.talk(with: server) } == .tlsCertificateUntrusted)
        let second = try ServerSide(certificates.good)
        var blind = try EnginePeer(
            client: try TLSClientContext(TLSClientOptions(trust: .anyCertificate))
                .makeEngine(serverName: "nobody.example.com"))
        try blind.talk(with: second)
        let isEstablished = blind.isEstablished
        #expect(isEstablished)
    }

    @Test func `sends its own certificate to a server that requests it`() throws {
        let identity = TLSClientOptions.Identity(
            certificateFile: certificates.client.certificateFile, keyFile: certificates.client.keyFile)
        let server = try ServerSide(certificates.good, clientAuthority: certificates.authority.certificateFile)
        var client = try EnginePeer(
            client: try certificates.context(identity).makeEngine(serverName: "redis.example.com"))
        try client.talk(with: server)
        #expect(server.isEstablished && server.clientHasCertificate)
    }

    @Test(arguments: [
        "+OK\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "\u{16}\u{3}\u{3}\u{7F}\u{7F}", "\u{0}\u{0}\u{0}\u{0}\u{0}",
    ])
    func `rejects bytes that are not TLS`(text: String) throws {
        var client = try EnginePeer(client: try certificates.context().makeEngine(serverName: "redis.example.com"))
        _ = client.output()
        #expect(code { () throws(TLSError) in try client.receive(Array(text.utf8)) } == .tlsNotTLS)
    }

    @Test func `a modified record ends the connection`() throws {
        let server = try ServerSide(certificates.good)
        var client = try EnginePeer(client: try certificates.context().makeEngine(serverName: "redis.example.com"))
        try client.talk(with: server)
        server.send(Array("hello".utf8))
        var record = server.output()
        record[record.count - 1] ^= 1
        #expect(code { () throws(TLSError) in try client.receive(record) } == .tlsProtocolError)
        #expect(client.plaintext.array == [])
    }

    @Test func `errors name the invalid file`() throws {
        let folder = try TemporaryFolder()
        let empty = try folder.write("nothing", to: "empty.pem")
        let good = certificates.good
        let identities: [(String, String, ErrorCode)] = [
            ("/nowhere.pem", good.keyFile, .tlsCertificateUnreadable), (empty, good.keyFile, .tlsCertificateEmpty),
            (good.certificateFile, "/nowhere.key", .tlsKeyUnreadable), (good.certificateFile, empty, .tlsKeyEmpty),
            (good.certificateFile, certificates.client.keyFile, .tlsKeyMismatch),
        ]
        for (certificate, key, expected) in identities {
            let identity = TLSClientOptions.Identity(certificateFile: certificate, keyFile: key)
            let error = #expect(throws: TLSError.self) {
                try TLSClientContext(TLSClientOptions(trust: .system, identity: identity))
            }
            #expect(error?.code == expected)
        }
        for (file, code) in [("/nowhere.pem", ErrorCode.tlsTrustUnreadable), (empty, .tlsTrustEmpty)] {
            let error = #expect(throws: TLSError.self) { try TLSClientContext(TLSClientOptions(trust: .file(file))) }
            #expect(error?.code == code && error?.message.contains(file) == true)
        }
    }

    @Test(arguments: ["", "a\u{0}b", String(repeating: "a", count: 300)])
    func `rejects invalid server names`(name: String) throws {
        let context = try certificates.context()
        #expect(code { () throws(TLSError) in _ = try context.makeEngine(serverName: name) } == .tlsServerNameInvalid)
    }
}

private func code(_ body: () throws(TLSError) -> Void) -> ErrorCode? {
    do {
        try body()
        return nil
    } catch {
        return error.code
    }
}
