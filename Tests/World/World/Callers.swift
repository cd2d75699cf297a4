import WorldMachine

/// What a seed decides about callers who prove who they are by others than the gateway: it draws from a generator of its
/// own, so that a plan without them stays as it was.
struct Callers {
    var hasApple: Bool
    var hasWeChat: Bool
    var hasBrowsers: Bool
    /// Whether accounts are kept in SQLite.
    var hasAccounts: Bool
    var sessionsPerSubject: Int
    var requiresNonce: Bool
    /// Readers of the events of requests.
    var readers: Int
    private var jumps: Int
    /// How often keys are fetched, in seconds.
    var keysLife: Int
    private let features: Features

    init(seed: UInt64) {
        features = Features(seed: seed)
        var random = SeededRandom(seed: seed, part: "callers")
        hasApple = random.chance(600)
        requiresNonce = random.chance(300)
        keysLife = random.pick([5, 20, 3600])
        hasBrowsers = random.chance(350)
        hasWeChat = random.chance(400)
        readers = random.chance(500) ? random.within(1...3) : 0
        jumps = random.chance(250) ? random.within(1...3) : 0
        hasAccounts = random.chance(hasApple ? 600 : 300)
        sessionsPerSubject = random.chance(250) ? random.within(2...5) : 1000
    }

    /// The names of the providers whose sessions routes accept.
    var providers: String {
        let more = (has(.members) ? ["people"] : []) + (has(.company) ? ["company"] : [])
        return (["password"] + (hasApple ? ["apple"] : []) + (hasWeChat ? ["wechat"] : []) + more).joined(
            separator: ", ")
    }

    /// Blocks of `providers`.
    /// - Parameter variant: of the configuration.
    func providerBlocks(_ variant: Int) -> String { appleBlock(variant) + weChatBlock }

    private var weChatBlock: String {
        guard hasWeChat else { return "" }
        return """
              wechat:
                kind: wechat
                base_url: "http://127.0.0.1:9102"
                apps:
                  ios: {variant: mobile, app_id: \(WeChat.appID), app_secret: "\(WeChat.secret)"}
                  web: {variant: website, app_id: \(WeChat.webID), app_secret: "\(WeChat.secret)"}
                web: {app: web}

            """
    }

    private func appleBlock(_ variant: Int) -> String {
        guard hasApple else { return "" }
        return """
              apple:
                kind: apple
                audiences: [\(Issuer.audience)\(variant % 2 == 0 ? ", " + KeyTrial.audience : "")]
                base_url: "http://127.0.0.1:9101"
                nonce: \(requiresNonce ? "required" : "optional")
            \(hasAccounts ? developer : "")

            """
    }

    private var developer: String {
        """
            team_id: ABCDE12345
            key_id: KEY1234567
            private_key_file: apple.p8
            notifications: true
        \(has(.grants) ? "    check: {every: 4s, spread: 1s, rate: 2/s}" : "")
        """
    }

    private func has(_ feature: Feature) -> Bool { features.has(feature, self) }

    var accounts: String {
        let claims = """
            , bootstrap: [{provider: password, provider_subject: u0, claims: {role: admin, level: 3, teams: [a, b]}}], \
            claims_from: [\(hasWeChat ? "{provider: wechat, claim: nickname, as: nick}" : "{provider: password, claim: team}")]
            """
        return hasAccounts
            ? "accounts: {url: \"sqlite:accounts.db\", key_file: account.key\(has(.operators) ? claims : "")}" : ""
    }

    /// The files that the configuration names, besides that of users.
    var files: [(name: String, text: String)] {
        let token = [("admin.token", EventReader.token + "\n")]
        guard hasAccounts else { return token }
        return token + [
            ("account.key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"), ("apple.p8", SigningKeys.developerPEM),
        ]
    }

    /// Other blocks of the configuration.
    var blocks: String {
        browser + jwks
    }

    private var browser: String {
        hasBrowsers
            ? "browser: {origin: \"\(BrowserUser.origin)\", native_redirects: [\"\(AppSignIn.redirect)\"]\(has(.members) ? ", register: true" : "")}\n"
            : ""
    }

    private var jwks: String {
        guard hasApple else { return "" }
        return """
            jwks: {ttl: \(keysLife)s, unknown_kid_cooldown: 1s, negative_ttl: 1s}

            """
    }

    var routes: String {
        guard hasApple else { return "" }
        return """
            - name: id
              match: {path: "/id/**"}
              auth: {providers: [apple]}
              headers: {set: {X-User-Id: {attribute: subject}}}
              upstream: app

            """
    }

    func faults(seed: UInt64, calm: Int64, gateways: Int) -> [PlannedFault] {
        var random = SeededRandom(seed: seed, part: "callers' faults")
        var faults: [PlannedFault] = []
        func add(_ kind: PlannedFault.Kind) {
            let at = 2_000_000_000 + Int64(random.below(Int((calm - 8_000_000_000) / 1_000_000))) * 1_000_000
            faults.append(PlannedFault(kind, at: at, duration: Int64(random.within(50...6000)) * 1_000_000))
        }
        if hasWeChat {
            for _ in 0..<random.below(4) {
                add(.weChatFails(random.pick([.dies, .hangs, .fails, .babbles, .crawls, .forgets])))
            }
        }
        if hasApple {
            for _ in 0..<random.below(5) {
                add(.issuerFails(random.pick([.dies, .hangs, .fails, .babbles, .crawls, .forgets])))
            }
            for _ in 0..<random.below(3) { add(.keysRotate) }
        }
        for _ in 0..<jumps {
            let time = random.chance(500) ? random.within(-8...8) : random.within(-90...90)
            add(.clockJumps(random.below(gateways), Int64(time) * 1_000_000_000))
        }
        if hasAccounts {
            for _ in 0..<random.below(4) { add(.diskFails(random.below(gateways), random.pick([5, 28]))) }
        }
        return faults
    }
}
