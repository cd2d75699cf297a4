import BundledProviders
import MartletAccounts
import MartletConfig
import MartletCore
import MartletHTTP
import MartletJSON
import MartletProvider
import MartletRouter
import MartletTesting
import Testing

@testable import MartletServer

/// A provider that accepts `Authorization: Basic` and rejects every credential.
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

/// A provider that accepts what its configuration says, and rejects every credential.
private struct SourceStub: Authenticating {
    struct Configuration: ConfigurationDecodable {
        let prefix: String?
        let header: String?

        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            prefix = reader.optional("prefix")
            header = reader.optional("header")
        }
    }

    static let kind: ProviderKind = "source"
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        let prefix = configuration.prefix.map { CredentialSource.bearerPrefix($0) }
        accepts = [prefix, configuration.header.map { .header($0) }].compactMap(\.self)
    }

    let accepts: [CredentialSource]

    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity { throw .rejected("stub.nobody") }
}

@Suite struct `A blueprint` {
    /// The diagnostics of a configuration.
    private func read(_ text: String, named file: String = "gw.yaml") -> (Blueprint?, [String]) {
        var registry = ProviderRegistry()
        registry.register(PasswordStub.self)
        registry.register(SourceStub.self)
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: file, registry: registry, environment: { _ in nil })
        return (blueprint, diagnostics.sorted.map(\.description))
    }

    private static let sources: [(String, String?)] = [
        ("prefix: k_", nil), ("prefix: m", "tokens that begin with 'm', as the gateway's own do"),
        ("prefix: ''", "tokens with an empty prefix, which every token has"),
        ("prefix: mat_", "tokens that begin with 'mat_', which are the gateway's own"),
        ("prefix: mlt_x", "tokens that begin with 'mlt_', which are the gateway's own"),
        ("prefix: mak_", "tokens that begin with 'mak_', which are the gateway's own"),
        ("prefix: mrt_x", "tokens that begin with 'mrt_', which are the gateway's own"), ("header: X-Api-Key", nil),
        ("header: authorization", "the header 'authorization', which has a meaning of its own"),
        ("header: Cookie", "the header 'Cookie', which has a meaning of its own"),
        ("header: 'X Key'", "the header 'X Key', which is no field name"),
        ("header: ''", "the header '', which is no field name"),
    ]

    @Test(arguments: sources)
    func `names providers that claim what they must not get`(key: String, reason: String?) {
        let (blueprint, lines) = read(
            """
            version: 1
            providers:
              keys: { kind: source, \(key) }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes: [{ name: all, upstream: echo, auth: { providers: [keys] } }]
            """)
        #expect((blueprint == nil) == (reason != nil))
        let expected = reason.map { "gw.yaml:3:3: error: provider 'keys' accepts \($0) [config.bad_value]" }
        #expect(lines == [expected].compactMap(\.self))
    }

    @Test func `names two providers of a route that accept the same header, however it is spelled`() {
        let (blueprint, lines) = read(
            """
            version: 1
            providers:
              keys: { kind: source, header: X-Api-Key }
              others: { kind: source, header: x-api-key }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes: [{ name: all, upstream: echo, auth: { credentials: [direct] } }]
            """)
        #expect(blueprint == nil && lines.count == 1 && lines.first?.hasSuffix("[config.ambiguous_providers]") == true)
    }

    @Test func `reads the rules that give accounts claims, and names what is wrong with them`() {
        let good = """
            version: 1
            accounts:
              url: "sqlite:a.db"
              claims_from: [{ provider: staff, claim: department, as: team }]
              bootstrap: [{ provider: staff, provider_subject: ada, claims: { role: admin, level: 3, on: true, in: [a, "1"] } }]
            providers: { staff: { kind: stub } }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes: [{ name: all, upstream: echo }]
            """
        let (blueprint, none) = read(good)
        let claims: JSONObject = ["role": "admin", "level": 3, "on": true, "in": ["a", "1"]]
        #expect(
            blueprint?.claimRules
                == LoginClaimRules(
                    sources: [LoginClaimRules.Source(provider: "staff", claim: "department", name: "team")],
                    bootstraps: [
                        LoginClaimRules.Bootstrap(provider: "staff", providerSubject: "ada", claims: claims)
                    ]), "\(none)")
        for (old, new, position, code) in [
            ("provider: staff, claim", "provider: stuff, claim", ":4:29: ", "[config.unknown_provider]"),
            ("as: team", "as: sub", ":4:59: ", "[claims.name_reserved]"),
            ("as: team", "as: email", ":4:59: ", "[claims.name_reserved]"),
            ("as: team", #"as: "a b""#, ":4:59: ", "[claims.name_invalid]"),
            (
                "provider: staff, provider_subject", "provider: stuff, provider_subject", ":5:27: ",
                "[config.unknown_provider]"
            ),
            ("role: admin", "exp: 3", ":5:67: ", "[claims.name_reserved]"),
        ] {
            let (blueprint, diagnostics) = read(good.replacing(old, with: new))
            #expect(blueprint == nil)
            #expect(diagnostics.contains { $0.contains(position) && $0.contains(code) }, "\(diagnostics)")
        }
    }

    @Test(arguments: [
        ("sessions: {}", "{}", "apple", true), ("", "{}", "apple", false),
        ("sessions: {}", "{ credentials: [session] }", "apple", false),
        ("sessions: {}", "{ credentials: [session, direct] }", "apple", false),
        ("sessions: {}", "{ credentials: [direct] }", "apple", false), ("sessions: {}", "none", "apple", false),
        ("sessions: {}", "{}", "staff", false),
    ])
    func `warns of identity tokens that are accepted by default beside sessions`(
        sessions: String, auth: String, provider: String, warns: Bool
    ) {
        var registry = ProviderRegistry()
        registry.register(PasswordStub.self)
        BundledProviders.register(in: &registry)
        let auth = auth == "none" ? auth : auth.replacing("{", with: "{ providers: [\(provider)], ")
        let text = """
            version: 1
            \(sessions)
            providers: { staff: { kind: stub }, apple: { kind: apple, audiences: [com.example.app] } }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes:
              - { name: api, auth: \(auth), upstream: echo }
              - { name: rest, match: { path: /x }, auth: { credentials: [session] }, upstream: echo }
            """.replacing(", }", with: " }")
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: "gw.yaml", registry: registry, environment: { _ in nil })
        let found = diagnostics.sorted.map(\.description).filter { $0.contains("identity tokens") }
        #expect(blueprint != nil, "\(diagnostics)")
        #expect(
            found
                == (warns
                    ? [
                        "gw.yaml:6:13: warning: route 'api' accepts identity tokens of provider 'apple' beside sessions, and "
                            + "no logout ends them: write credentials: [session], or [session, direct] if that is intended "
                            + "[config.insecure]"
                    ] : []))
    }

    @Test(arguments: [
        ("browser: { origin: https://app.example.com, register: true }", "", true),
        ("browser: { origin: https://app.example.com, register: true }", ", reset: true", false),
        ("browser: { origin: https://app.example.com, register: true }", ", register: { enabled: true }", false),
        ("browser: { origin: https://app.example.com }", "", false),
    ])
    func `warns of names that can be taken without a proof`(browser: String, more: String, warns: Bool) {
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        let text = """
            version: 1
            sessions: {}
            accounts: { url: "sqlite:m.db" }
            \(browser)
            providers: { staff: { kind: password, users: accounts\(more) } }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes: [{ name: all, auth: none, upstream: echo }]
            """
        let (_, diagnostics) = Blueprint.read(
            text: text, name: "gw.yaml", registry: registry, environment: { _ in nil })
        let found = diagnostics.sorted.map(\.description).filter { $0.contains("nothing proves whose it is") }
        #expect(found.count == (warns ? 1 : 0), "\(diagnostics.sorted)")
        #expect(found.allSatisfy { $0.contains("gw.yaml:4:") && $0.hasSuffix("[config.insecure]") })
    }

    @Test(arguments: [
        ("", "admin", true), ("", "a@example.com", true), (", reset: true", "admin", true),
        (", reset: true", "a@example.com", false),
    ])
    func `warns of claims for a name that anyone may take first`(more: String, name: String, warns: Bool) {
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        let text = """
            version: 1
            sessions: {}
            accounts: { url: "sqlite:m.db", bootstrap: [{ provider: staff, provider_subject: "\(name)", claims: { role: x } }] }
            browser: { origin: https://app.example.com, register: true }
            providers: { staff: { kind: password, users: accounts\(more) } }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes: [{ name: all, auth: none, upstream: echo }]
            """
        let (_, diagnostics) = Blueprint.read(
            text: text, name: "gw.yaml", registry: registry, environment: { _ in nil })
        let found = diagnostics.sorted.map(\.description).filter { $0.contains("first gets these claims") }
        #expect(found.count == (warns ? 1 : 0), "\(diagnostics.sorted)")
        #expect(found.allSatisfy { $0.contains("gw.yaml:3:") && $0.hasSuffix("[config.insecure]") })
    }

    @Test func `reports the errors of all blocks together`() throws {
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        let text = """
            version: 1
            servre: {}
            store: { url: "redis://" }
            accounts: { url: "postgresql://h:0/d" }
            providers:
              apple: { kind: apple, audience: [a], nonce: yes }
              wechat: { kind: wechat, apps: { ios: { variant: android, app_id: wx0, app_secret: "${UNSET}" } } }
              staff: { kind: password, hash: bcrypt }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes: [{ name: all, upstream: ehco }]
            """
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: "gw.yaml", registry: registry, environment: { _ in nil })
        #expect(blueprint == nil)
        let lines = diagnostics.sorted.map(\.description)
        for part in [
            ":2:1: ", "'servre'", ":3:15: ", ":4:18: ", "'audience'", "nonce: ", "variant: ",
            "'UNSET' is not set", ":8:34: ", "'ehco'",
        ] {
            #expect(lines.contains { $0.contains(part) }, "\(part) in \(lines)")
        }
        #expect(lines.count { $0.contains("'UNSET'") || $0.contains("app_secret") } == 1, "\(lines)")
    }

    @Test func `compiles the routes although a provider has errors`() {
        let (_, lines) = read(
            """
            version: 1
            providers: { staff: { kind: stub, x: 1 } }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes: [{ name: all, match: { path_regex: "(" }, upstream: echo }]
            """)
        #expect(
            lines.contains { $0.contains("gw.yaml:2:") } && lines.contains { $0.contains("gw.yaml:4:") }, "\(lines)")
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
        ("{}", true), ("{ credentials: [direct] }", true), ("{ credentials: [session, direct] }", true),
        ("{ credentials: [session] }", false), ("{ providers: [staff] }", false),
    ])
    func `rejects two providers that accept the same direct credential`(auth: String, rejects: Bool) {
        let (blueprint, lines) = read(
            configuration(auth: auth).replacing(
                "{ staff: { kind: stub } }", with: "{ staff: { kind: stub }, guests: { kind: stub } }"))
        let error =
            "gw.yaml:5:18: error: route 'all': providers 'staff' and 'guests' accept the same tokens "
            + "[config.ambiguous_providers]"
        #expect((blueprint == nil) == rejects && lines.contains(error) == rejects)
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
            "gw.yaml:2:31: warning: passwords for provider 'staff' (Authorization: Basic) may be sent in clear text to "
            + "this listener from other machines [config.insecure]"
        #expect(lines == (warns ? [expected] : []))
    }

    @Test(arguments: [
        ("store: { url: \"redis://10.9.9.9:6379\" }", "can be read on the way", true),
        ("store: { url: \"redis+sentinel://s1,s2/main\" }", "can be read on the way", true),
        ("store: { url: \"rediss://10.9.9.9:6379\" }", "can be read on the way", false),
        ("store: { url: \"redis://localhost:6379\" }", "can be read on the way", false),
        ("accounts: { url: \"postgresql://m@10.9.9.9/m\" }", "use sslmode=verify-full", true),
        ("accounts: { url: \"postgresql://m@10.9.9.9/m?sslmode=require\" }", "use sslmode=verify-full", true),
        ("accounts: { url: \"postgresql://m@10.9.9.9/m?sslmode=verify-full\" }", "use sslmode=verify-full", false),
        ("accounts: { url: \"postgresql://m@127.0.0.1/m\" }", "use sslmode=verify-full", false),
        ("accounts: { url: \"sqlite:m.db\" }", "use sslmode=verify-full", false),
    ])
    func `warns of stores on other machines that are not verified`(block: String, text: String, warns: Bool) {
        let (blueprint, lines) = read(configuration(more: block))
        #expect(blueprint != nil)
        #expect(lines.contains { $0.contains(text) && $0.contains("warning: ") } == warns, "\(lines)")
    }

    private static let signingKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    @Test(
        arguments: [
            (signingKey, "account.created, '*'", nil),
            ("planted", "account.created", "gw.yaml:7:55: error: secret: must be 24 to 64 bytes in base64"),
            (signingKey, "acount.created", "events: no event has this type (did you mean 'account.created'?)"),
            (signingKey, "account.*, login", "events: no event has this type"),
        ] as [(String, String, String?)])
    func `validates the keys and event types of webhooks`(secret: String, events: String, error: String?) {
        let more = """
            accounts: { url: "sqlite:m.db" }
            webhooks: [{ name: h, url: "https://a.test/", secret: \(secret), events: [\(events)] }]
            """
        let (blueprint, lines) = read(configuration(more: more))
        #expect((blueprint == nil) == (error != nil) && blueprint?.webhooks.count ?? 0 == (error == nil ? 1 : 0))
        #expect(lines.count == (error == nil ? 0 : 1), "\(lines)")
        if let error { #expect(lines.first?.contains(error) == true, "\(lines)") }
        #expect(!lines.joined().contains("planted") && !lines.joined().contains("MfKQ"))
    }

    @Test(arguments: [
        "postgresql://u:planted@db.test/m?bad=1", "postgresql://u:planted@db.test:0/m", "postgresql:///m",
        "postgresql://u:plan%zted@db.test/m",
    ])
    func `rejects an invalid URL of the account store`(url: String) {
        #expect(read(configuration(more: "accounts: { url: 'postgresql://u:planted@127.0.0.1/m' }")).1 == [])
        let (blueprint, lines) = read(configuration(more: "accounts: { url: '\(url)' }"))
        #expect(blueprint == nil && lines.count == 1)
        #expect(lines.first?.hasPrefix("gw.yaml:6:18: error: invalid account store URL: ") == true)
        #expect(lines.first?.hasSuffix("[accounts.bad_url]") == true)
        #expect(!lines.joined().contains("plan"))
    }

    @Test(arguments: [("owner", "user"), ("group", "group")])
    func `rejects unknown owners of a socket`(key: String, kind: String) {
        let (blueprint, lines) = read(configuration(address: "unix:/tmp/x.sock\", \(key): \"nobody-at-all"))
        #expect(blueprint == nil)
        #expect(lines.contains { $0.hasPrefix("gw.yaml:2:") && $0.hasSuffix(" [server.unknown_\(kind)]") }, "\(lines)")
        #expect(read(configuration(address: "unix:/tmp/x.sock\", \(key): \"root")).0 != nil)
    }

    @Test func `has a signer if assertions are configured`() throws {
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
