import MartletCore
import MartletTesting
import Synchronization
import Testing

@testable import MartletTLS

/// Authorities and certificates for all tests: making them takes longer than using them.
struct ServerCertificates: Sendable {
    let authority: CertificateAuthority
    let stranger: CertificateAuthority
    let first: TLSIdentityFiles
    let second: TLSIdentityFiles
    let client: TLSIdentityFiles

    private init() throws {
        authority = try CertificateAuthority()
        stranger = try CertificateAuthority(name: "Stranger")
        first = Self.files(try authority.issue("first", ["DNS:a.example.com", "IP:127.0.0.1"]))
        second = Self.files(try authority.issue("second", ["DNS:b.example.com", "DNS:*.wild.example.com"]))
        client = Self.files(try authority.issue("client", ["DNS:client"]))
    }

    static let shared = Result { try ServerCertificates() }

    static func files(_ issued: CertificateAuthority.Issued) -> TLSIdentityFiles {
        TLSIdentityFiles(certificateFile: issued.certificateFile, keyFile: issued.keyFile)
    }
}

@Suite struct TLSServerContextTests {
    let certificates: ServerCertificates
    let tickets = TLSTicketKeys(clock: .system)

    init() throws { certificates = try ServerCertificates.shared.get() }

    func client(
        _ identity: TLSIdentityFiles? = nil, _ protocols: [TLSApplicationProtocol] = []
    ) throws -> TLSClientContext {
        try TLSClientContext(
            TLSClientOptions(
                trust: .file(certificates.authority.certificateFile), identity: identity, protocols: protocols))
    }

    @Test(arguments: [1, 7, 500, Int.max], [TLSVersion.tls12, .tls13])
    func `shakes hands and speaks both ways, whatever the pieces`(pieces: Int, version: TLSVersion) throws {
        var options = TLSServerOptions(identities: [certificates.first])
        options.minimumVersion = version
        let server = try TLSServerContext(options, tickets: tickets)
        var pair = try EnginePair(
            client(nil, [.http2, .http1]).makeEngine(serverName: "a.example.com"), server.makeEngine())
        pair.pieces = pieces
        try pair.client.say(Array("before ".utf8))
        pair.talk()
        let isEstablished = pair.areEstablished
        #expect(isEstablished)
        #expect(pair.server.engine.serverName == "a.example.com")
        #expect(pair.server.engine.applicationProtocol == .http2 && pair.client.engine.applicationProtocol == .http2)
        #expect(pair.server.engine.version == "TLSv1.3" && pair.server.engine.cipher == "TLS_AES_128_GCM_SHA256")
        let long = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        try pair.client.say(long)
        try pair.server.say(long)
        pair.talk()
        #expect(pair.server.plaintext.array == Array("before ".utf8) + long)
        #expect(pair.client.plaintext.array == long)
        pair.server.engine.close()
        pair.talk()
        let isClosed = pair.client.engine.isPeerClosed
        #expect(isClosed)
    }

    @Test func `goes on from the last session, also at another context of the same names`() throws {
        let options = TLSServerOptions(identities: [certificates.first])
        let client = try client()
        for round in 0..<3 {
            let server = try TLSServerContext(options, tickets: tickets)
            var pair = try EnginePair(client.makeEngine(serverName: "127.0.0.1"), server.makeEngine())
            pair.talk()
            #expect(pair.server.engine.isResumed == (round > 0) && pair.client.engine.isResumed == (round > 0))
        }
    }
}
