internal import MartletSimulator

/// The configuration of `martlet demo`; never written to a file.
struct DemoConfiguration {
    static let audience = "com.example.app"
    /// The Services ID of its pages.
    static let website = "com.example.web"
    /// Where an app gets the code of a sign-in in a browser.
    static let nativeRedirect = "com.example.app:/cb"
    /// The password user and its password, which is not a secret.
    static let user = "ada"
    static let password = "correct horse battery staple"
    static let apps: [WeChatSimulator.App] = [
        .init(id: "wx0000000000000001", secret: "the-phone-app-s-secret", variant: .mobile),
        .init(id: "wx0000000000000002", secret: "the-mini-program-s-secret", variant: .miniProgram),
        .init(id: "wx0000000000000003", secret: "the-website-s-secret", variant: .website),
        .init(id: "wx0000000000000004", secret: "the-official-account-s-secret", variant: .officialAccount),
    ]

    let listen: String
    /// Under which browsers reach it; `nil`: no pages.
    let origin: String?
    let apple: String
    let weChat: String
    let webhook: String
    /// The key that signs them.
    let webhookSecret: String
    let folder: String
    let appleKeyFile: String
    let accountKeyFile: String
    /// The listener's certificate; `nil` is clear text.
    let certificate: DemoCertificate?

    var text: String {
        let tls = certificate.map {
            ", tls: { certificate_file: \"\($0.certificateFile)\", key_file: \"\($0.keyFile)\" }"
        }
        return """
            version: 1
            server:
              listen: [{ address: "\(listen)"\(tls ?? "") }]
              timeouts: { drain: 5s }
            admin: { address: "127.0.0.1:0" }
            log: { level: error }
            accounts: { url: "sqlite:\(folder)/martlet.db", key_file: "\(accountKeyFile)" }
            sessions: {}
            \(origin.map(browser) ?? "")
            webhooks:
              - { name: backend, url: "\(webhook)", secret: "\(webhookSecret)", events: ["*"] }
            providers:
              apple:
                kind: apple
                audiences: [\(Self.audience), \(Self.website)]
                base_url: "\(apple)"
                team_id: \(AppleSimulator.generatedTeamID)
                key_id: \(AppleSimulator.generatedKeyID)
                private_key_file: "\(appleKeyFile)"
                notifications: true
                web: { client_id: \(Self.website), response_mode: form_post, scope: [name, email] }
              wechat:
                kind: wechat
                base_url: "\(weChat)"
                open_url: "\(weChat)"
                web: { app: website, official_account: mp }
                apps:
                  ios: \(app(0))
                  mini: \(app(1))
                  website: \(app(2))
                  mp: \(app(3))
              password: { kind: password, users: accounts }
            upstreams:
              echo: { endpoints: ["builtin:echo"] }
            routes:
              - name: home
                match: { path: / }
                auth: { providers: [apple, wechat, password], mode: optional, credentials: [session] }
                upstream: echo
              - name: me
                match: { path: /me/**, methods: [GET] }
                auth: { providers: [apple, wechat, password], credentials: [session] }
                upstream: echo
              - name: public
                match: { path: /public/** }
                auth: none
                upstream: echo
              - name: hello
                match: { path: /hello/** }
                auth: { providers: [apple], mode: optional, credentials: [session, direct] }
                upstream: echo
              - name: staff
                match: { path: /v1/staff/** }
                auth: { providers: [apple], credentials: [session, direct] }
                authorize:
                  - { claim: email_verified, equals: true }
                  - { claim: email, matches: '[^@]+@example\\.com' }
                headers: { set: { X-User-Id: { attribute: subject }, X-User-Email: { attribute: email } } }
                rewrite: { strip_prefix: /v1 }
                upstream: echo
              - name: api
                match: { path: /v1/** }
                auth: { providers: [apple, wechat, password], credentials: [session, direct] }
                rewrite: { strip_prefix: /v1 }
                upstream: echo

            """
    }

    private func browser(_ origin: String) -> String {
        """
        browser:
          origin: "\(origin)"
          native_redirects: ["\(Self.nativeRedirect)"]
          pages: { title: Martlet demo }
          register: true
        """
    }

    private func app(_ index: Int) -> String {
        let app = Self.apps[index]
        return "{ variant: \(app.variant.rawValue), app_id: \(app.id), app_secret: \(app.secret) }"
    }
}
