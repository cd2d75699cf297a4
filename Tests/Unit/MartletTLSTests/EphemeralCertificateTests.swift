import MartletCore
import MartletTesting
import Testing

@testable import MartletTLS

@Suite struct `An ephemeral certificate` {
    @Test func `is accepted only by clients that trust its authority`() throws {
        let made = try EphemeralCertificate(
            for: ["DNS:localhost", "IP:127.0.0.1", "IP:::1"], life: .seconds(86_400), clock: .system)
        let folder = try TemporaryFolder()
        let authority = try folder.write(bytes: made.authority, to: "ca.pem")
        let files = TLSIdentityFiles(
            certificateFile: try folder.write(bytes: made.certificate, to: "cert.pem"),
            keyFile: try made.key.withBytes { try folder.write(bytes: $0, to: "key.pem") })
        let server = try TLSServerContext(
            TLSServerOptions(identities: [files]), tickets: TLSTicketKeys(clock: .system))
        #expect(server.certificates.map(\.names) == [["localhost", "127.0.0.1", "::1"]])
        for name in ["localhost", "127.0.0.1", "::1"] {
            let client = try TLSClientContext(TLSClientOptions(trust: .file(authority)))
            var pair = try EnginePair(client.makeEngine(serverName: name), server.makeEngine())
            pair.exchange()
            let isEstablished = pair.areEstablished
            #expect(isEstablished)
        }
        let stranger = try TLSClientContext(TLSClientOptions(trust: .system))
        var pair = try EnginePair(stranger.makeEngine(serverName: "localhost"), server.makeEngine())
        pair.exchange()
        #expect(pair.clientFailure?.code == .tlsCertificateUntrusted)
        #expect(pair.serverFailure?.code == .tlsRefusedByPeer)
        let other = try EphemeralCertificate(for: ["DNS:localhost"], life: .seconds(60), clock: .system)
        #expect(other.certificate != made.certificate && other.authority != made.authority)
        let strict = try run(
            try Executable.named("openssl"),
            ["verify", "-x509_strict", "-CAfile", authority, files.certificateFile])
        #expect(strict.ending == .exited(0))
    }
}
