import COpenSSL
import MartletCore
import MartletTesting
import Synchronization
import Testing

@testable import MartletTLS

/// A clock that a test advances.
private final class ManualClock: Sendable {
    private let seconds: Mutex<Int64>

    init(seconds: Int64 = 1_000_000) { self.seconds = Mutex(seconds) }

    func move(by more: Duration) { seconds.withLock { $0 += more.wholeSeconds } }

    var clock: Clock {
        Clock(
            unixTime: { self.seconds.withLock { UnixTime(seconds: $0) } },
            monotonicTime: { self.seconds.withLock { MonotonicTime(nanoseconds: $0 * 1_000_000_000) } })
    }
}

@Suite struct `Resumption of TLS sessions` {
    let certificates: ServerCertificates
    private let time = ManualClock()
    let tickets: TLSTicketKeys

    init() throws {
        certificates = try ServerCertificates.shared.get()
        tickets = TLSTicketKeys(clock: time.clock)
    }

    private func server(
        _ identities: [TLSIdentityFiles]? = nil, tickets: TLSTicketKeys? = nil,
        _ change: (inout TLSServerOptions) -> Void = { _ in }
    ) throws -> TLSServerContext {
        var options = TLSServerOptions(identities: identities ?? [certificates.first])
        change(&options)
        return try TLSServerContext(options, tickets: tickets ?? self.tickets)
    }

    /// Whether a connection of the client to the server is resumed.
    private func resumes(
        _ client: TLSClientContext, _ server: TLSServerContext, name: String = "a.example.com"
    ) throws -> Bool {
        var pair = try EnginePair(client.makeEngine(serverName: name), server.makeEngine())
        pair.exchange()
        let isSame = pair.server.engine.isResumed == pair.client.engine.isResumed
        let isEstablished = pair.areEstablished
        #expect(isEstablished && isSame)
        return pair.server.engine.isResumed
    }

    @Test func `is offered by a client for the same server name only`() throws {
        let (client, server) = (try certificates.context(), try server())
        #expect(try !resumes(client, server))
        #expect(try resumes(client, server))
        #expect(try !resumes(client, server, name: "127.0.0.1"))
        #expect(try resumes(client, server, name: "127.0.0.1"))
        #expect(try resumes(client, server))
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `works in every version, and without a name`(version: Int32) throws {
        let context = try server()
        let first = try PlainClient(.init(versions: version...version))
        var peer = try EnginePeer(context.makeEngine())
        #expect(first.talk(to: &peer) == nil)
        let again = try PlainClient(.init(versions: version...version, session: first))
        var next = try EnginePeer(context.makeEngine())
        #expect(again.talk(to: &next) == nil)
        #expect(again.isResumed && next.engine.isResumed && again.version == first.version)
    }

    @Test func `works with another context with the same names, as after a reload`() throws {
        let client = try certificates.context()
        #expect(try !resumes(client, server()))
        #expect(try resumes(client, server()))
        // Another certificate for the same names.
        #expect(try resumes(client, server([certificates.rsa])))
        // Not with other names, nor in another process.
        #expect(try !resumes(client, server([certificates.first, certificates.second])))
        #expect(try !resumes(client, server(tickets: TLSTicketKeys(clock: .system))))
    }

    @Test func `works after a key rotation, until the last ticket has expired`() throws {
        let (client, server) = (try certificates.context(), try server())
        #expect(try !resumes(client, server))
        let first = tickets.current()?.bytes
        time.move(by: .seconds(3599))
        #expect(tickets.current()?.bytes === first)
        time.move(by: .seconds(1))
        #expect(tickets.current()?.bytes !== first)
        #expect(try resumes(client, server))
        // The old key is removed when its last ticket has expired; the last connection's ticket is of the second key.
        time.move(by: .seconds(3600 * 5 - 1))
        #expect(try resumes(client, server))
        time.move(by: .seconds(3600 * 5))
        #expect(try !resumes(client, server))
    }

    @Test func `renews the ticket of a TLS 1.2 client after a key rotation`() throws {
        let context = try server()
        let first = try PlainClient(.init(versions: TLS1_2_VERSION...TLS1_2_VERSION))
        var peer = try EnginePeer(context.makeEngine())
        #expect(first.talk(to: &peer) == nil)
        time.move(by: .seconds(2 * 3600))
        let second = try PlainClient(.init(versions: TLS1_2_VERSION...TLS1_2_VERSION, session: first))
        var next = try EnginePeer(context.makeEngine())
        #expect(second.talk(to: &next) == nil && second.isResumed)
        time.move(by: .seconds(4 * 3600))
        for (session, resumes) in [(first, false), (second, true)] {
            let client = try PlainClient(.init(versions: TLS1_2_VERSION...TLS1_2_VERSION, session: session))
            var last = try EnginePeer(context.makeEngine())
            #expect(client.talk(to: &last) == nil && client.isResumed == resumes)
        }
    }

    @Test func `caches a bounded number of servers`() throws {
        let client = try TLSClientContext(TLSClientOptions(trust: .anyCertificate))
        let server = try server()
        for number in 0..<(ClientSessions.maximumNames + 20) {
            _ = try resumes(client, server, name: "n\(number).test")
        }
        #expect(client.sessions.count == ClientSessions.maximumNames)
    }

    @Test func `keys have unique names and bytes`() throws {
        let first = try #require(tickets.current())
        time.move(by: .seconds(3600))
        let second = try #require(tickets.current())
        #expect(first.bytes.withBytes { $0 } != second.bytes.withBytes { $0 })
        #expect("\(first.bytes)" == "<redacted>")
    }

    // MARK: Client certificates

    private func demand(_ options: inout TLSServerOptions, _ mode: TLSServerOptions.ClientAuthentication) {
        options.clientAuthorityFile = certificates.authority.certificateFile
        options.clientAuthentication = mode
    }

    @Test func `of clients with certificates requires the same client authentication`() throws {
        let client = try certificates.context(certificates.client)
        let required = try server { demand(&$0, .required) }
        #expect(try !resumes(client, required))
        #expect(try resumes(client, required))
        // Other rules, other authorities, or no client certificates: a full handshake each.
        #expect(try !resumes(client, server { demand(&$0, .optional) }))
        #expect(try !resumes(client, server()))
        #expect(try !resumes(client, required))
        let other = try server {
            $0.clientAuthorityFile = certificates.stranger.certificateFile
            $0.clientAuthentication = .required
        }
        var pair = try EnginePair(client.makeEngine(serverName: "a.example.com"), other.makeEngine())
        pair.exchange()
        #expect(pair.serverFailure?.code == .tlsCertificateUntrusted)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `ends when the client's certificate has expired`(version: Int32) throws {
        // The certificate is good for a day.
        let time = ManualClock(seconds: Clock.system.unixTime.seconds + 23 * 3600)
        let server = try server(tickets: TLSTicketKeys(clock: time.clock)) { demand(&$0, .required) }
        func client(after session: PlainClient?) throws -> PlainClient {
            let client = try PlainClient(
                .init(versions: version...version, identity: certificates.client, session: session))
            var peer = try EnginePeer(server.makeEngine())
            #expect(client.talk(to: &peer) == nil)
            return client
        }
        let first = try client(after: nil)
        let second = try client(after: first)
        time.move(by: .seconds(2 * 3600))
        let third = try client(after: second)
        #expect(!first.isResumed && second.isResumed && !third.isResumed)
    }
}

@Suite struct `Certificates of TLS clients` {
    let certificates: ServerCertificates

    init() throws { certificates = try ServerCertificates.shared.get() }

    private func outcome(
        _ identity: TLSIdentityFiles?, _ mode: TLSServerOptions.ClientAuthentication, _ version: Int32
    ) throws -> ErrorCode? {
        var options = TLSServerOptions(identities: [certificates.first])
        options.clientAuthorityFile = certificates.authority.certificateFile
        options.clientAuthentication = mode
        let server = try TLSServerContext(options, tickets: TLSTicketKeys(clock: .system))
        let client = try PlainClient(.init(versions: version...version, identity: identity))
        var peer = try EnginePeer(server.makeEngine())
        return client.talk(to: &peer)?.code
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `are verified as the listener requires`(version: Int32) throws {
        let (good, strange, expired) = (certificates.client, certificates.strange, certificates.expired)
        let cases: [(TLSIdentityFiles?, TLSServerOptions.ClientAuthentication, ErrorCode?)] = [
            (good, .required, nil), (nil, .required, .tlsClientCertificateMissing),
            (strange, .required, .tlsCertificateUntrusted), (expired, .required, .tlsCertificateExpired),
            (good, .optional, nil), (nil, .optional, nil), (strange, .optional, .tlsCertificateUntrusted),
            (expired, .optional, .tlsCertificateExpired), (strange, .none, nil), (nil, .none, nil),
        ]
        for (identity, mode, expected) in cases {
            #expect(try outcome(identity, mode, version) == expected, "\(mode)")
        }
    }
}
