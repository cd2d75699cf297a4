import MartletConfig
import MartletCore
import MartletHTTP
import MartletProvider
import MartletRouter
import MartletTesting
import Testing

@testable import MartletServer

/// A provider that takes `Authorization: Basic` and believes nobody.
private struct PasswordStub: Authenticating {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "stub"
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}

    var accepts: [CredentialSource] { [.basic] }

    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity { throw .rejected("stub.nobody") }
}

@Suite struct `A blueprint` {
    /// What `check` says of a file.
    private func read(_ text: String, named file: String = "gw.yaml") -> (Blueprint?, [String]) {
        var registry = ProviderRegistry()
        registry.register(PasswordStub.self)
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: file, registry: registry, environment: { _ in nil })
        return (blueprint, diagnostics.sorted.map(\.description))
    }

    private func configuration(address: String = "127.0.0.1:8080", auth: String = "{}", more: String = "") -> String {
        """
        version: 1
        server: { listen: [{ address: "\(address)" }] }
        providers: { staff: { kind: stub } }
        upstreams: { echo: { endpoints: [builtin:echo] } }
        routes: [{ name: all, auth: \(auth), upstream: echo }]
        \(more)
        """
    }

    @Test(arguments: [
        ("0.0.0.0:8080", "{}", true), ("[::]:0", "{ credentials: [direct] }", true), ("192.0.2.1:80", "{}", true),
        ("127.0.0.1:8080", "{}", false), ("[::1]:8080", "{}", false), ("unix:/run/m.sock", "{}", false),
        ("0.0.0.0:8080", "{ credentials: [session] }", false),
    ])
    func `warns of passwords in clear text`(address: String, auth: String, warns: Bool) {
        let (blueprint, lines) = read(configuration(address: address, auth: auth))
        #expect(blueprint != nil)
        let expected =
            "gw.yaml:2:31: warning: passwords for provider 'staff' (Authorization: Basic) may come in clear text here, "
            + "from other machines [config.insecure]"
        #expect(lines == (warns ? [expected] : []))
    }

    @Test(arguments: [
        "postgresql://u:planted@db.test/m?bad=1", "postgresql://u:planted@db.test:0/m", "postgresql:///m",
        "postgresql://u:plan%zted@db.test/m",
    ])
    func `has accounts whose URL can be used`(url: String) {
        #expect(read(configuration(more: "accounts: { url: 'postgresql://u:planted@db.test/m' }")).1 == [])
        let (blueprint, lines) = read(configuration(more: "accounts: { url: '\(url)' }"))
        #expect(blueprint == nil && lines.count == 1)
        #expect(lines.first?.hasPrefix("gw.yaml:6:18: error: the account store's URL is not usable: ") == true)
        #expect(lines.first?.hasSuffix("[accounts.bad_url]") == true)
        #expect(!lines.joined().contains("plan"))
    }

    @Test(arguments: [("owner", "user"), ("group", "group")])
    func `knows who is to own a socket`(key: String, kind: String) {
        let (blueprint, lines) = read(configuration(address: "unix:/tmp/x.sock\", \(key): \"nobody-at-all"))
        #expect(blueprint == nil)
        #expect(lines.contains { $0.hasPrefix("gw.yaml:2:") && $0.hasSuffix(" [server.unknown_\(kind)]") }, "\(lines)")
        #expect(read(configuration(address: "unix:/tmp/x.sock\", \(key): \"root")).0 != nil)
    }

    @Test func `has a signer where assertions are wanted`() throws {
        let folder = try TemporaryFolder()
        try folder.write(try SigningKey("k", .p256).privatePEM(), to: "good.pem")
        try folder.write(try SigningKey("k").privatePEM(), to: "rsa.pem")
        let file = folder.file("gw.yaml")
        let good = read(configuration(more: "assertion: { issuer: gw, key_file: good.pem }"), named: file)
        #expect(good.1 == [] && good.0?.assertion?.headerName == "X-Auth-Assertion")
        #expect(good.0?.routes.reservedNames.contains("x_auth_assertion") == true)
        let bad = read(
            configuration(more: "assertion: { issuer: gw, key_file: good.pem, verify_key_files: [rsa.pem] }"),
            named: file)
        #expect(bad.0 == nil)
        #expect(
            bad.1 == [
                "\(file):6:65: error: verify_key_files: is an RSA key, but assertions are signed with P-256 (ES256) [config.bad_value]"
            ])
        let none = read(configuration())
        #expect(none.0 != nil && none.0?.assertion == nil)
    }
}
