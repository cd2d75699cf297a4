internal import MartletSimulator

/// The configuration of `martlet demo`; never written to a file.
struct DemoConfiguration {
    static let audience = "com.example.app"
    /// The password user and its password, which is not a secret.
    static let user = "ada"
    static let password = "correct horse battery staple"
    /// The demo's applications at the simulated WeChat.
    static let apps: [WeChatSimulator.App] = [
        .init(id: "wx0000000000000001", secret: "the-phone-app-s-secret", variant: .mobile),
        .init(id: "wx0000000000000002", secret: "the-mini-program-s-secret", variant: .miniProgram),
    ]

    /// The listener's address.
    let listen: String
    /// The base URLs of the simulated Apple and the simulated WeChat.
    let apple: String
    let weChat: String
    /// Where events are sent.
    let webhook: String
    /// The key that signs them.
    let webhookSecret: String
    /// The folder of the account store.
    let folder: String
    /// The file with the developer's key for the simulated Apple.
    let appleKeyFile: String
    /// The file with the key of the account store.
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
            webhooks:
              - { name: backend, url: "\(webhook)", secret: "\(webhookSecret)", events: ["*"] }
            providers:
              apple:
                kind: apple
                audiences: [\(Self.audience)]
                base_url: "\(apple)"
                team_id: \(AppleSimulator.generatedTeamID)
                key_id: \(AppleSimulator.generatedKeyID)
                private_key_file: "\(appleKeyFile)"
                notifications: true
              wechat:
                kind: wechat
                base_url: "\(weChat)"
                apps:
                  ios: { variant: \(Self.apps[0].variant.rawValue), app_id: \(Self.apps[0].id), app_secret: \(Self.apps[0].secret) }
                  mini: { variant: \(Self.apps[1].variant.rawValue), app_id: \(Self.apps[1].id), app_secret: \(Self.apps[1].secret) }
              password: { kind: password, users: accounts }
            upstreams:
              echo: { endpoints: ["builtin:echo"] }
            routes:
              - name: public
                match: { path: /public/** }
                auth: none
                upstream: echo
              - name: hello
                match: { path: /hello/** }
                auth: { providers: [apple], mode: optional }
                upstream: echo
              - name: staff
                match: { path: /v1/staff/** }
                auth: { providers: [apple] }
                authorize:
                  - { claim: email_verified, equals: true }
                  - { claim: email, matches: '[^@]+@example\\.com' }
                headers: { set: { X-User-Id: { attribute: subject }, X-User-Email: { claim: email } } }
                rewrite: { strip_prefix: /v1 }
                upstream: echo
              - name: api
                match: { path: /v1/** }
                auth: { providers: [apple, wechat, password] }
                rewrite: { strip_prefix: /v1 }
                upstream: echo

            """
    }
}
