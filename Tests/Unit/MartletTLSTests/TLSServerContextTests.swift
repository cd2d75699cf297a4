import COpenSSL
import MartletCore
import MartletTesting
import Testing

@testable import MartletTLS

@Suite struct TLSServerContextTests {
    let certificates: ServerCertificates
    let tickets = TLSTicketKeys(clock: .system)

    init() throws { certificates = try ServerCertificates.shared.get() }

    private func server(
        _ identities: [TLSIdentityFiles]? = nil, _ change: (inout TLSServerOptions) -> Void = { _ in }
    ) throws -> TLSServerContext {
        var options = TLSServerOptions(identities: identities ?? [certificates.first])
        change(&options)
        return try TLSServerContext(options, tickets: tickets)
    }

    @Test(arguments: [1, 7, 500, Int.max], [TLSVersion.tls12, .tls13])
    func `completes the handshake and transfers data, however it is split`(pieces: Int, version: TLSVersion) throws {
        var options = TLSServerOptions(identities: [certificates.first])
        options.minimumVersion = version
        let server = try TLSServerContext(options, tickets: tickets)
        var pair = try EnginePair(
            certificates.context(nil, [.http2, .http1]).makeEngine(serverName: "a.example.com"), server.makeEngine())
        pair.pieces = pieces
        try pair.client.send(Array("before ".utf8))
        pair.exchange()
        let isEstablished = pair.areEstablished
        #expect(isEstablished)
        #expect(pair.server.engine.serverName == "a.example.com")
        #expect(pair.server.engine.applicationProtocol == .http2 && pair.client.engine.applicationProtocol == .http2)
        #expect(pair.server.engine.version == "TLSv1.3" && pair.server.engine.cipher == "TLS_AES_128_GCM_SHA256")
        let long = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        try pair.client.send(long)
        try pair.server.send(long)
        pair.exchange()
        #expect(pair.server.plaintext.array == Array("before ".utf8) + long)
        #expect(pair.client.plaintext.array == long)
        pair.server.engine.close()
        pair.exchange()
        let isClosed = pair.client.engine.isPeerClosed
        #expect(isClosed)
    }

    @Test func `buffers a hello that arrives byte by byte until it is complete`() throws {
        var client = try EnginePeer(certificates.context().makeEngine(serverName: "a.example.com"))
        try client.engine.start()
        let hello = client.output()
        var engine = try server().makeEngine()
        var plaintext = ByteBuffer()
        for byte in hello.dropLast() {
            let kept = unsafe [byte].withUnsafeBufferPointer { unsafe engine.bufferClientHello($0) }
            #expect(kept)
        }
        let isSilent = !engine.hasCiphertext
        #expect(isSilent)
        try unsafe hello.suffix(1).withUnsafeBufferPointer { last throws(TLSError) in
            try unsafe engine.receive(last, plaintext: &plaintext)
        }
        let hasResponse = engine.hasCiphertext
        #expect(hasResponse)
    }

    @Test(arguments: [
        (nil, "first"), ("a.example.com", "first"), ("b.example.com", "second"), ("B.EXAMPLE.com", "second"),
        ("x.wild.example.com", "second"), ("exact.wild.example.com", "third"), ("Exact.Wild.example.com", "third"),
        ("x.y.wild.example.com", "first"), ("wild.example.com", "first"), (".wild.example.com", "first"),
        ("nobody.test", "first"), ("second", "first"), ("b.example.com.", "first"),
    ])
    func `selects the certificate by the requested name`(name: String?, expected: String) throws {
        let context = try server([certificates.first, certificates.second, certificates.third])
        for version in [TLS1_2_VERSION, TLS1_3_VERSION] {
            let client = try PlainClient(.init(name: name, versions: version...version))
            var peer = try EnginePeer(context.makeEngine())
            #expect(client.talk(to: &peer) == nil)
            #expect(client.peer == expected && peer.engine.serverName == name)
        }
    }

    @Test func `reports the names of its certificates`() throws {
        let context = try server([certificates.first, certificates.second])
        #expect(
            context.certificates.map(\.names) == [
                ["a.example.com", "127.0.0.1"], ["b.example.com", "*.wild.example.com"],
            ])
        let now = Clock.system.unixTime
        for facts in context.certificates {
            #expect(facts.isValid(at: now) && !facts.isValid(at: now.advanced(bySeconds: 86_401)))
            #expect(!facts.isValid(at: facts.notBefore.advanced(bySeconds: -1)))
        }
    }

    @Test(arguments: [("ECDSA+SHA256", EVP_PKEY_EC), ("RSA-PSS+SHA256", EVP_PKEY_RSA)], [true, false])
    func `has a certificate for each key type`(case: (signatures: String, key: Int32), isNamed: Bool) throws {
        let context = try server([certificates.rsa, certificates.first, certificates.second])
        for version in [TLS1_2_VERSION, TLS1_3_VERSION] {
            let client = try PlainClient(
                .init(
                    name: isNamed ? "a.example.com" : nil, versions: version...version, signatures: `case`.signatures))
            var peer = try EnginePeer(context.makeEngine())
            #expect(client.talk(to: &peer) == nil)
            #expect(client.peerKey == `case`.key)
        }
    }

    @Test func `rejects old versions, and TLS 1.2 if 1.3 is required`() throws {
        for (versions, minimum) in [
            (TLS1_VERSION...TLS1_VERSION, TLSVersion.tls12), (TLS1_1_VERSION...TLS1_1_VERSION, .tls12),
            (TLS1_2_VERSION...TLS1_2_VERSION, .tls13),
        ] {
            let client = try PlainClient(.init(versions: versions))
            var peer = try EnginePeer(server { $0.minimumVersion = minimum }.makeEngine())
            #expect(client.talk(to: &peer)?.code == .tlsVersionUnsupported)
        }
    }

    @Test(arguments: [
        ("AES256-SHA", nil), ("AES128-GCM-SHA256", nil), ("ECDHE-ECDSA-AES128-SHA", nil), ("aNULL", nil),
        ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        // A client that prefers ChaCha has no hardware for AES.
        ("ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ])
    func `accepts only ciphers with forward secrecy and authentication`(offer: String, chosen: String?) throws {
        let client = try PlainClient(.init(versions: TLS1_2_VERSION...TLS1_2_VERSION, ciphers: offer))
        var peer = try EnginePeer(server().makeEngine())
        let failure = client.talk(to: &peer)
        #expect(failure?.code == (chosen == nil ? .tlsNothingShared : nil))
        if let chosen { #expect(client.cipher == chosen && peer.engine.cipher == chosen) }
    }

    @Test func `uses the configured ciphers`() throws {
        let context = try server {
            $0.ciphers = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
            $0.cipherSuites = "TLS_CHACHA20_POLY1305_SHA256"
        }
        for (version, cipher) in [
            (TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384"), (TLS1_3_VERSION, "TLS_CHACHA20_POLY1305_SHA256"),
        ] {
            let client = try PlainClient(.init(versions: version...version))
            var peer = try EnginePeer(context.makeEngine())
            #expect(client.talk(to: &peer) == nil && client.cipher == cipher)
        }
    }

    @Test(arguments: [
        ("\u{2}h2\u{8}http/1.1", true, TLSApplicationProtocol.http2 as TLSApplicationProtocol?),
        ("\u{8}http/1.1\u{2}h2", true, .http2), ("\u{8}http/1.1", true, .http1), ("\u{2}h2", true, .http2),
        ("\u{2}h2\u{8}http/1.1", false, .http1), ("", true, nil), ("\u{3}foo\u{8}http/1.1", true, .http1),
    ])
    func `negotiates a protocol by its own preference`(
        offer: String, offersHTTP2: Bool, chosen: TLSApplicationProtocol?
    ) throws {
        for version in [TLS1_2_VERSION, TLS1_3_VERSION] {
            let client = try PlainClient(.init(versions: version...version, protocols: Array(offer.utf8)))
            var peer = try EnginePeer(server { $0.offersHTTP2 = offersHTTP2 }.makeEngine())
            #expect(client.talk(to: &peer) == nil)
            #expect(client.isEstablished && peer.engine.applicationProtocol == chosen)
        }
    }

    @Test(arguments: [("\u{3}foo", true), ("\u{2}h2", false), ("\u{2}H2", true), ("\u{8}http/1.0", true)])
    func `rejects clients without a common protocol`(offer: String, offersHTTP2: Bool) throws {
        for version in [TLS1_2_VERSION, TLS1_3_VERSION] {
            let client = try PlainClient(.init(versions: version...version, protocols: Array(offer.utf8)))
            var peer = try EnginePeer(server { $0.offersHTTP2 = offersHTTP2 }.makeEngine())
            #expect(client.talk(to: &peer)?.code == .tlsNoApplicationProtocol)
        }
    }

    @Test func `does not renegotiate`() throws {
        let client = try PlainClient(.init(versions: TLS1_2_VERSION...TLS1_2_VERSION))
        var peer = try EnginePeer(server().makeEngine())
        #expect(client.talk(to: &peer) == nil)
        client.renegotiate()
        let asked = client.output()
        #expect(!asked.isEmpty)
        try peer.receive(asked, pieces: .max)
        // Only a warning (RFC 5246 §7.2.2: no_renegotiation); the connection continues.
        #expect(peer.output().first == 21)
        let isEstablished = peer.engine.isEstablished
        #expect(isEstablished)
    }

    @Test func `takes no data before the handshake, and compresses none`() throws {
        let context = try server()
        let first = try PlainClient(.init(versions: TLS1_3_VERSION...TLS1_3_VERSION))
        var peer = try EnginePeer(context.makeEngine())
        #expect(first.talk(to: &peer) == nil)
        #expect(first.earlyBytes == 0 && !first.isCompressed)
        // A client that sends some nevertheless is resumed without them.
        let again = try PlainClient(.init(versions: TLS1_3_VERSION...TLS1_3_VERSION, session: first))
        #expect(again.sendEarly(Array("GET /pay HTTP/1.1\r\n".utf8)))
        var next = try EnginePeer(context.makeEngine())
        #expect(again.talk(to: &next) == nil)
        let isUnread = next.plaintext.isEmpty
        #expect(again.isResumed && !again.wasEarlyAccepted && isUnread)
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ErrorCode.tlsHTTPRequest), ("POST /x HTTP/1.1\r\n", .tlsHTTPRequest),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .tlsNotTLS), ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", .tlsNotTLS),
        ("\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}", .tlsNotTLS),
        ("\u{16}\u{3}\u{1}\u{7F}\u{7F}" + String(repeating: "x", count: 16_384), .tlsNotTLS),
    ])
    func `rejects bytes that are not TLS`(text: String, code: ErrorCode) throws {
        for pieces in [1, Int.max] {
            var peer = try EnginePeer(server().makeEngine())
            let error = #expect(throws: TLSError.self) { try peer.receive(Array(text.utf8), pieces: pieces) }
            #expect(error?.code == code)
        }
    }

    @Test func `limits the bytes of a client's handshake`() throws {
        // A hello that claims to have 100 000 bytes, in records of 4 000.
        var hello: [UInt8] = [1, 1, 0x86, 0xA0, 3, 3]
        hello += [UInt8](repeating: 0, count: 100_000)
        var peer = try EnginePeer(server().makeEngine())
        var sent = 0
        let error = #expect(throws: TLSError.self) {
            while sent < hello.count {
                let piece = hello[sent..<min(sent + 4000, hello.count)]
                sent += piece.count
                try peer.receive([22, 3, 1, UInt8(piece.count >> 8), UInt8(piece.count & 255)] + piece, pieces: .max)
            }
        }
        #expect(error?.code == .tlsHandshakeTooLarge)
        #expect(sent < 40_000)
    }
}
