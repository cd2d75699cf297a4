import MartletConfig
import MartletCore
import MartletTesting
import Testing

/// Decodes the minimal configuration with more lines.
private func configuration(_ lines: String, file: String = "etc/gw.yaml") -> (GatewayConfiguration?, Diagnostics) {
    GatewayConfiguration.decode(
        text: Array("\(minimalSample)\n\(lines)".utf8), file: file, environment: { _ in nil }, knownKinds: testKinds)
}

@Suite struct `Sign-in` {
    @Test(arguments: [
        ("sqlite:martlet.db", "sqlite:etc/martlet.db"), ("sqlite:../db/a b.db", "sqlite:etc/../db/a b.db"),
        ("sqlite:/var/lib/martlet.db", "sqlite:/var/lib/martlet.db"),
        ("postgresql://u:p@[::1]:5432/martlet?sslmode=require", "postgresql://u:p@[::1]:5432/martlet?sslmode=require"),
        ("postgres://db", "postgres://db"), ("sqlite:", nil), ("sqlite://martlet.db", nil), ("sqlite:dir/", nil),
        ("sqlite::memory:", nil), ("postgresql://", nil), ("postgres://u:p @db", nil), ("postgres:db", nil),
        ("martlet.db", nil), ("POSTGRES://db", nil), ("sqlite:a\\tb", nil),
    ])
    func `stores accounts in a file or in PostgreSQL`(_ url: String, _ expected: String?) {
        let (decoded, diagnostics) = configuration("accounts: { url: \"\(url)\" }")
        #expect(decoded?.accounts?.url.value == expected)
        #expect(diagnostics.all.map(\.code) == (expected == nil ? ["config.bad_url"] : []))
        // The URL may contain a password.
        #expect(!diagnostics.description.contains("u:p"))
    }

    @Test func `reads the URL of accounts and the keys of assertions from files`() throws {
        let folder = try TemporaryFolder()
        for (name, text) in [
            ("url", "sqlite:m.db\n"), ("new.pem", "new\n"), ("old.pem", "old"), ("older.pem", "older"),
        ] {
            try folder.write(text, to: name)
        }
        let lines = """
            accounts: { url_file: url }
            assertion: { issuer: gw, key_file: new.pem, verify_key_files: [old.pem, older.pem] }
            """
        let (decoded, diagnostics) = configuration(lines, file: folder.path + "/gw.yaml")
        #expect(diagnostics.description == "")
        #expect(decoded?.accounts?.url.value == "sqlite:\(folder.path)/m.db")
        let assertion = try #require(decoded?.assertion)
        let keys = ([assertion.key] + assertion.otherKeys).map {
            $0.value.withBytes { String(decoding: $0, as: UTF8.self) }
        }
        #expect(keys == ["new", "old", "older"])
        #expect(assertion.otherKeys.map(\.location.column) == [64, 73])
    }

    @Test(arguments: [
        ("/auth", true), ("/api/v1/sign-in", true), ("/a@b:c", true), ("/", false), ("auth", false), ("", false),
        ("/auth/", false), ("/a//b", false), ("/a/../b", false), ("/%61uth", false), ("/auth/**", false),
        ("/a;b", false), ("/a?b", false), ("/a\"b", false), ("/\u{FC}", false),
    ])
    func `accepts plain paths only`(_ path: String, _ isValid: Bool) {
        let (decoded, diagnostics) = configuration("sessions: { path: '\(path)' }")
        #expect(decoded?.sessions.path == (isValid ? path : nil))
        #expect(diagnostics.all.map(\.code) == (isValid ? [] : ["config.bad_pattern"]))
    }

    @Test(arguments: [
        ("https://app.example.com", "https://app.example.com"),
        ("https://App.Example.com:443", "https://app.example.com"),
        ("https://app.example.com:8443", "https://app.example.com:8443"),
        ("http://[::1]:3000", "http://[::1]:3000"), ("http://localhost:80", "http://localhost"),
        ("https://app.example.com/", nil), ("https://app.example.com?x", nil), ("https://*.example.com", nil),
        ("capacitor://localhost", "capacitor://localhost"), ("tauri://localhost", "tauri://localhost"),
        ("ionic://localhost:8100", "ionic://localhost:8100"), ("my.app+x://Host-1", "my.app+x://Host-1"),
        ("capacitor://localhost/", nil), ("capacitor://", nil), ("Capacitor://localhost", nil), ("1a://localhost", nil),
        ("capacitor://a b", nil), ("capacitor://u@localhost", nil), ("capacitor:localhost", nil), ("file:///a", nil),
        ("capacitor://localhost?x", nil), ("capacitor://*", nil), ("null", nil),
        ("*", nil), ("https://user@example.com", nil), ("https://", nil),
    ])
    func `normalizes exact origins as browsers send them`(_ origin: String, _ expected: String?) {
        let (decoded, diagnostics) = configuration("sessions: { cors: { origins: ['\(origin)'] } }")
        #expect(decoded?.sessions.corsOrigins == expected.map { [$0] })
        #expect(diagnostics.all.map(\.code) == (expected == nil ? ["config.bad_url"] : []))
    }

    @Test func `bounds the lifetime of access tokens by that of sessions`() {
        #expect(configuration("sessions: { refresh_ttl: 5s }").0?.sessions.accessTTL == .seconds(5))
        let (decoded, diagnostics) = configuration("sessions: { access_ttl: 2s }")
        #expect(decoded?.sessions.accessTTL == .seconds(2) && diagnostics.isEmpty)
    }

    @Test(arguments: [
        ("/account/password", true), ("https://example.com/p?x=1", true), ("http://127.0.0.1:8080/p", true),
        ("http://example.com/p", false), ("//evil.example/p", false), ("/\\\\evil.example", false), ("p", false),
        ("javascript:alert(1)", false), ("/p#x", false),
    ])
    func `redirects password changes to an https URL or a path`(_ target: String, _ isValid: Bool) {
        let (decoded, diagnostics) = configuration("well_known: { change_password: \"\(target)\" }")
        #expect((decoded?.wellKnown.changePasswordURL == target) == isValid)
        #expect(diagnostics.all.map(\.code) == (isValid ? [] : ["config.bad_url"]))
    }
}
