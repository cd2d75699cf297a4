import MartletCore
import MartletFetch
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct SMTPClientTests {
    private static let content = Array("From: a@b.cd\r\nSubject: x\r\n\r\nfirst\r\n.\r\n..two\r\nlast\r\n".utf8)

    private func client(
        _ server: MailServer, _ encryption: SMTPServer.Encryption = .none, host: String = "127.0.0.1",
        login: (String, String)? = nil, ca: CertificateAuthority? = nil, timeout: Duration = .seconds(10)
    ) -> SMTPClient {
        SMTPClient(
            SMTPServer(
                host: host, port: server.port, encryption: encryption,
                login: login.map { .init(user: $0.0, password: Secret($0.1)) }, caFile: ca?.certificateFile,
                timeout: timeout), clock: .system)
    }

    /// The error of a mail; `nil` if it was accepted.
    private func send(_ client: SMTPClient, to recipient: String = "ada@example.com") async -> SMTPError? {
        do {
            try await client.send(from: "auth@example.com", to: recipient, content: Self.content)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: MailServer.Encryption.allCases)
    func `delivers a mail, with a login`(encryption: MailServer.Encryption) async throws {
        let authority = try CertificateAuthority()
        let certificate = try authority.issue("mail", ["IP:127.0.0.1", "DNS:localhost"])
        let server = try MailServer(
            encryption, certificate: encryption == .none ? nil : certificate,
            login: ("me@example.com", "s3cr3t p\u{E4}ss"))
        let kinds: [MailServer.Encryption: SMTPServer.Encryption] = [
            .none: .none, .startTLS: .startTLS, .immediate: .immediate,
        ]
        let client = client(
            server, try #require(kinds[encryption]), login: ("me@example.com", "s3cr3t p\u{E4}ss"), ca: authority)
        #expect(await send(client) == nil)
        let mail = try #require(server.mails.first)
        #expect(mail.sender == "<auth@example.com>" && mail.recipients == ["<ada@example.com>"])
        #expect(mail.content == String(decoding: Self.content, as: UTF8.self))
        #expect(mail.user == "me@example.com" && mail.isEncrypted == (encryption != .none))
    }

    @Test func `sends nothing in clear text where encryption is required`() async throws {
        let server = try MailServer(login: ("me", "secret"))
        let error = await send(client(server, .startTLS, login: ("me", "secret")))
        #expect(
            error?.code == .smtpNotEncrypted && error?.isPermanent == false,
            "\(error.map(String.init(describing:)) ?? "")")
        #expect(!server.verbs.contains("AUTH") && !server.verbs.contains("MAIL"))
    }

    @Test(arguments: [SMTPServer.Encryption.startTLS, .immediate])
    func `trusts only the server's own certificate`(encryption: SMTPServer.Encryption) async throws {
        let authority = try CertificateAuthority()
        for (names, trusted) in [(["IP:127.0.0.1"], nil), (["DNS:other.test"], authority)]
            as [([String], CertificateAuthority?)]
        {
            let server = try MailServer(
                encryption == .immediate ? .immediate : .startTLS, certificate: try authority.issue("mail", names),
                login: ("me", "secret"))
            let error = await send(client(server, encryption, login: ("me", "secret"), ca: trusted))
            #expect(error?.code == .smtpNotEncrypted && error?.isPermanent == false)
            #expect(!server.verbs.contains("AUTH") && server.mails.isEmpty)
        }
    }

    static let rejections: [(behavior: [String: String], code: ErrorCode, isPermanent: Bool)] = [
        (["RCPT": "550 no such user"], .smtpRejected, true), (["RCPT": "450 busy"], .smtpRejected, false),
        (["MAIL": "553 not you"], .smtpRejected, true), (["MAIL": "421 later"], .smtpRejected, false),
        (["DATA": "554 no"], .smtpRejected, true), (["CONTENT": "552 too much"], .smtpRejected, true),
        (["CONTENT": "451 later"], .smtpRejected, false), (["AUTH": "535 wrong"], .smtpLoginDenied, false),
    ]

    @Test(arguments: rejections)
    func `tells rejections for good from others`(
        behavior: [String: String], code: ErrorCode, isPermanent: Bool
    ) async throws {
        let server = try MailServer(login: ("me", "secret"), behavior: .init(responses: behavior))
        let error = try #require(await send(client(server, login: ("me", "secret"))))
        #expect(error.code == code && error.isPermanent == isPermanent, "\(error)")
        #expect(!error.message.contains("example.com") && !error.message.contains("secret") && server.mails.isEmpty)
    }

    @Test func `ends at its deadline, wherever the server hangs`() async throws {
        for verb in ["EHLO", "RCPT", "DATA"] {
            let server = try MailServer(behavior: .init(hangsAt: verb))
            let error = await send(client(server, timeout: .seconds(1)))
            #expect(error?.code == .smtpTimeout, "\(error.map(String.init(describing:)) ?? "sent")")
        }
    }

    @Test func `fails if the server is unreachable, or closes the connection`() async throws {
        let server = try MailServer(behavior: .init(closesAt: "RCPT"))
        let cut = await send(client(server))
        #expect(cut != nil && cut?.isPermanent == false)
        let unreachable = SMTPClient(
            SMTPServer(
                host: "127.0.0.1", port: try refusedPort(), encryption: .none, login: nil, caFile: nil,
                timeout: .seconds(5)), clock: .system)
        #expect(await send(unreachable)?.code == .smtpUnreachable)
    }

    @Test func `stops long before its timeout`() async throws {
        let server = try MailServer(behavior: .init(hangsAt: "RCPT"))
        let client = client(server, timeout: .seconds(600))
        async let result = send(client)
        // Suspends, because a blocked thread may be the one that the mail needs.
        while !server.verbs.contains("RCPT") { try await Task.sleep(for: .milliseconds(20)) }
        client.shutdown()
        #expect(await result?.code == .smtpStopped)
        #expect(await send(client)?.code == .smtpStopped)
    }

    @Test(arguments: [
        "ada@example.com>\r\nRCPT TO:<eve@example.com", "a b@example.com", "<ada@example.com>", "", "a\0@example.com",
    ])
    func `sends nothing to what is no address`(recipient: String) async throws {
        let server = try MailServer()
        let error = await send(client(server), to: recipient)
        #expect(error?.code == .smtpInvalid && error?.isPermanent == true && server.verbs.isEmpty)
    }
}
