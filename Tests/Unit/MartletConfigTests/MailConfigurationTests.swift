import MartletConfig
import MartletCore
import MartletTesting
import Testing

/// Decodes the minimal configuration with an account store and a mail server.
private func configuration(_ mail: String, file: String = "gw.yaml") -> (GatewayConfiguration?, Diagnostics) {
    GatewayConfiguration.decode(
        text: Array("\(minimalSample)\naccounts: { url: \"sqlite:a.db\" }\nmail: \(mail)\n".utf8), file: file,
        environment: { _ in nil }, knownKinds: testKinds)
}

@Suite struct `A link template` {
    @Test(arguments: [
        ("https://app.example.com/reset?token={token}", "https://app.example.com/reset?token=mlt_x"),
        ("https://app.example.com/reset?a=1&t={token}&b", "https://app.example.com/reset?a=1&t=mlt_x&b"),
        ("https://app.example.com?{token}", "https://app.example.com?mlt_x"),
        ("https://app.example.com/#/reset/{token}?a=b", "https://app.example.com/#/reset/mlt_x?a=b"),
        ("http://localhost:3000/?{token}", "http://localhost:3000/?mlt_x"),
        ("http://[::1]/#/{token}", "http://[::1]/#/mlt_x"),
    ])
    func `gets a token`(_ text: String, _ expected: String) {
        #expect(LinkTemplate(text)?.link("mlt_x") == expected)
    }

    @Test(arguments: [
        "", "{token}", "https://app.example.com/reset", "http://app.example.com/?{token}", "https://{token}/x",
        "https://{token}.example.com/", "https://app.example.com{token}", "https://app.example.com/?{token}{token}",
        "https://app.example.com/{token}?t={token}", "https://app.example.com/{Token}", "javascript:alert({token})",
        "https://user@app.example.com/?{token}", "https://app.example.com/? {token}",
        "https://app.example.com/?\n{token}",
        "https://app.example.com/#{token}#", "https://app.example.com/#<{token}>", "//app.example.com/{token}",
        // A server would write the token into its log.
        "https://app.example.com/{token}", "https://app.example.com/{token}?a",
        "https://app.example.com/reset/{token}#b",
        "https:/{token}", "https:/?{token}",
    ])
    func `is nothing else`(_ text: String) { #expect(LinkTemplate(text) == nil) }
}

@Suite struct `A mail server` {
    @Test(
        arguments: [
            ("smtps://mail.example.com", "mail.example.com", 465, true, nil),
            ("smtps://user@mail.example.com:4650/", "mail.example.com", 4650, true, "user"),
            ("smtp://me%40example.com@Mail.Example.com", "mail.example.com", 587, false, "me@example.com"),
            ("smtp://me@example.com@[::1]:25", "::1", 25, false, "me@example.com"),
            ("smtp://127.0.0.1:2525", "127.0.0.1", 2525, false, nil),
        ] as [(String, String, UInt16, Bool, String?)])
    func `has an address`(_ text: String, _ host: String, _ port: UInt16, _ isSecure: Bool, _ user: String?) throws {
        let address = try #require(MailServerAddress(text))
        #expect(address.host == host && address.port == port && address.isSecure == isSecure && address.user == user)
    }

    @Test func `encrypts except on loopback`() {
        #expect(MailServerAddress("smtp://mail.example.com")?.isEncrypted == true)
        #expect(MailServerAddress("smtp://127.0.0.1")?.isEncrypted == false)
        #expect(MailServerAddress("smtps://localhost")?.isEncrypted == true)
    }

    @Test(arguments: [
        "", "mail.example.com", "http://mail.example.com", "smtp:mail.example.com", "smtps://", "smtps://user@",
        "smtps://user:password@mail.example.com", "smtps://@mail.example.com", "smtps://mail.example.com/path",
        "smtps://mail.example.com?x", "smtps://mail.example.com:0", "smtps://mail.example.com:70000",
        "smtps://us%0d%0aer@mail.example.com", "smtps://us%+1er@mail.example.com", "smtps://us%4@mail.example.com",
        "smtps://us%ffer@mail.example.com", "smtps://mail example.com", "SMTPS://mail.example.com",
    ])
    func `has no other address`(_ text: String) { #expect(MailServerAddress(text) == nil) }

    @Test(
        arguments: [
            ("auth@example.com", nil, "auth@example.com"),
            ("Example <auth@example.com>", "Example", "auth@example.com"),
            ("张三 公司  <Auth@Example.com>", "张三 公司", "auth@example.com"),
            ("O'Neil, Inc. <a@b.cd>", "O'Neil, Inc.", "a@b.cd"),
        ] as [(String, String?, String)])
    func `sends as`(_ text: String, _ name: String?, _ address: String) throws {
        let sender = try #require(MailSender(text))
        #expect(sender.name == name && sender.address.text == address)
    }

    @Test(arguments: [
        "", "Example", "<auth@example.com>", "Example auth@example.com", "Exa\r\nBcc: x <auth@example.com>",
        "\"Example\" <auth@example.com>", "Example <auth@example.com", "Example <a@b.cd> <auth@example.com>",
        "Example <auth>",
    ])
    func `sends as nothing else`(_ text: String) { #expect(MailSender(text) == nil) }

    @Test func `is configured with its password in a file`() throws {
        let folder = try TemporaryFolder()
        try folder.write("hunter2\n", to: "password")
        let block =
            "{ smtp: smtps://user@mail.example.com, password_file: password, from: Example <auth@example.com>, "
            + "ca_file: ca.pem, timeout: 5s }"
        let (decoded, diagnostics) = configuration(block, file: folder.file("gw.yaml"))
        let mail = try #require(decoded?.mail, "\(diagnostics)")
        #expect(mail.password?.value.withBytes { String(decoding: $0, as: UTF8.self) } == "hunter2")
        #expect(mail.timeout == .seconds(5) && mail.caFile?.text == folder.file("ca.pem"))
        #expect(decoded?.source.files.contains(FilePath(folder.file("password"))) == true)
        #expect(configuration("{ smtp: smtp://127.0.0.1:25, from: a@b.cd }").0?.mail?.timeout == .seconds(30))
    }
}
