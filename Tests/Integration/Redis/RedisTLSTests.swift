import MartletCore
import MartletIO
import MartletRedis
import MartletTLS
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct RedisTLSTests {
    private func server(_ certificate: CertificateAuthority.Issued) throws -> (RedisServer, port: UInt16) {
        let port = try refusedPort()
        let server = try RedisServer(extra: [
            "--tls-port", String(port), "--tls-cert-file", certificate.certificateFile, "--tls-key-file",
            certificate.keyFile, "--tls-auth-clients", "no",
        ])
        return (server, port)
    }

    @Test func `speaks TLS to a server it can verify by name and by address`() async throws {
        let authority = try CertificateAuthority()
        let (server, port) = try server(try authority.issue("redis", ["DNS:localhost", "IP:127.0.0.1"]))
        for host in ["localhost", "127.0.0.1"] {
            try await withRedis("rediss://\(host):\(port)?ca_file=\(authority.certificateFile)") { client in
                try await client.waitUntilConnected()
                let value = [UInt8](repeating: 9, count: 300_000)
                try await client.set(value, for: "a", lifetime: .seconds(60))
                #expect(try await client.stored("a") == value)
            }
        }
        #expect(try server.command("DBSIZE") == ":1\r\n")
    }

    @Test func `shows its certificate to a server that asks for one, and the name it wants`() async throws {
        let authority = try CertificateAuthority()
        let certificate = try authority.issue("redis", ["DNS:localhost"])
        let ours = try authority.issue("client", ["DNS:client"])
        let port = try refusedPort()
        let server = try RedisServer(extra: [
            "--tls-port", String(port), "--tls-cert-file", certificate.certificateFile, "--tls-key-file",
            certificate.keyFile, "--tls-auth-clients", "yes", "--tls-ca-cert-file", authority.certificateFile,
        ])
        let url = "rediss://localhost:\(port)?ca_file=\(authority.certificateFile)"
        try await withRedis("\(url)&cert_file=\(ours.certificateFile)&key_file=\(ours.keyFile)") { client in
            try await client.waitUntilConnected()
            try await client.set([1], for: "a", lifetime: .seconds(60))
        }
        try await withRedis(url) { client in
            // TLS 1.3 lets the client finish before the server verifies it.
            let code = await failure { () async throws(StoreError) in
                try await client.waitUntilConnected()
                try await client.set([1], for: "a", lifetime: .seconds(60))
            }
            #expect(code != nil)
        }
        try server.stop()
    }

    @Test func `refuses servers it cannot verify`() async throws {
        let authority = try CertificateAuthority()
        let stranger = try CertificateAuthority(name: "Stranger")
        let names = ["DNS:localhost", "IP:127.0.0.1"]
        let cases: [(CertificateAuthority.Issued, String, ErrorCode)] = [
            (try stranger.issue("s", names), "localhost", .tlsCertificateUntrusted),
            (try authority.issue("other", ["DNS:redis.example"]), "localhost", .tlsNameMismatch),
            (try authority.issue("name-only", ["DNS:localhost"]), "127.0.0.1", .tlsNameMismatch),
            (try authority.issue("old", names, days: -1), "localhost", .tlsCertificateExpired),
        ]
        for (certificate, host, code) in cases {
            let (server, port) = try server(certificate)
            try await withRedis("rediss://\(host):\(port)?ca_file=\(authority.certificateFile)") { client in
                #expect(await failure { () async throws(StoreError) in try await client.waitUntilConnected() } == code)
                #expect(await client.outage(reading: "a") == .redisNotConnected)
            }
            try server.stop()
        }
    }

    @Test func `does not trust a private authority unless told to`() async throws {
        let authority = try CertificateAuthority()
        let (server, port) = try server(try authority.issue("redis", ["DNS:localhost"]))
        try await withRedis("rediss://localhost:\(port)") { client in
            let code = await failure { () async throws(StoreError) in try await client.waitUntilConnected() }
            #expect(code == .tlsCertificateUntrusted)
        }
        try server.stop()
    }

    @Test func `does not fall back to clear text`() async throws {
        let server = try RedisServer()
        try await withRedis("rediss://127.0.0.1:\(server.port)") { client in
            let code = await failure { () async throws(StoreError) in try await client.waitUntilConnected() }
            #expect([.tlsNotTLS, .tlsHandshakeFailed, .streamClosed, .redisConnectTimeout].contains(code))
        }
    }

    @Test func `names a CA file that cannot be read`() async throws {
        await #expect(throws: StoreError.self) {
            try await withRedis("rediss://localhost?ca_file=/nowhere.pem") { _ in }
        }
    }
}
