public import MartletConfig
internal import MartletCore
internal import MartletProvider

/// The block of a provider whose `kind` is `wechat`.
public struct WeChatConfiguration: ConfigurationDecodable {
    /// The id that accounts are keyed by.
    public enum AccountKey: String, Sendable, CaseIterable, ConfigurationValue {
        /// The unionid if WeChat returns one, the openid until then.
        case unionIDPreferred = "unionid_preferred"
        /// The unionid; users without one cannot sign in.
        case unionIDRequired = "unionid_required"
        /// The openid: one person has a different account in each app.
        case openID = "openid"
    }

    /// The language of the profile data.
    public enum Language: String, Sendable, CaseIterable, ConfigurationValue {
        case simplifiedChinese = "zh_CN"
        case traditionalChinese = "zh_TW"
        case english = "en"
    }

    /// An application with the name that clients send as `app`.
    public struct NamedApp: Sendable {
        public let name: Located<String>
        public let app: WeChatApp

        /// The values without their locations.
        var clientName: String { name.value }
        var variant: WeChatApp.Variant { app.variant.value }
        var id: String { app.id.value }
        var secret: Secret { app.secret.value }
    }

    /// Never empty.
    public let apps: [NamedApp]
    /// The base URL of WeChat's endpoints.
    public let baseURL: Located<URLText>
    /// The timeout of one call to WeChat.
    public let timeout: Duration
    public let accountKey: AccountKey
    /// Whether pages of an official account may sign users in with `snsapi_base`, which yields only an openid.
    public let allowsBaseScope: Bool
    /// Whether nickname and avatar are fetched.
    public let fetchesProfile: Bool
    public let language: Language
    /// Whether a mini-program's encrypted data is decrypted.
    public let decrypts: Bool
    /// The base URL of WeChat's pages.
    public let openURL: Located<URLText>
    /// Sign-in by redirect; `nil` if it is off.
    let web: WebBlock?
    /// The position of `web`; `nil` if it is off.
    public let redirectLocation: SourceLocation?

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        baseURL = reader.optional("base_url", default: Located(Defaults.baseURL, at: reader.location))
        timeout = reader.optional("timeout", default: Defaults.timeout, in: .milliseconds(100) ... .seconds(60))
        accountKey = reader.optional("account_key", default: .unionIDPreferred)
        allowsBaseScope = reader.optional("allow_base_scope", default: false)
        fetchesProfile = reader.optional("profile", default: true)
        language = reader.optional("lang", default: .simplifiedChinese)
        decrypts = reader.optional("decrypt", default: false)
        openURL = reader.optional("open_url", default: Located(Defaults.openURL, at: reader.location))
        let web = reader.block("web", as: WebBlock.self)
        self.web = web
        redirectLocation = web == nil ? nil : reader.node("web")?.location
        guard let block = reader.node("apps") else {
            throw ConfigurationError(.configMissingKey, at: reader.location, "missing key 'apps' in \(reader.title)")
        }
        apps = reader.namedBlocks("apps", noun: "app").map(NamedApp.init)
        if block.entries?.isEmpty == true {
            throw ConfigurationError(.configBadValue, at: block.location, "apps: must not be empty")
        }
    }

    private enum Defaults {
        static let baseURL: URLText = "https://api.weixin.qq.com"
        static let openURL: URLText = "https://open.weixin.qq.com"
        static let timeout = Duration.seconds(5)
    }
}

// MARK: - Grammar and validation

extension WeChatConfiguration {
    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required(
                "apps", .map(.block(of: WeChatApp.self)),
                "The applications at WeChat, by the name that clients send as `app`."),
            .optional("base_url", .url, default: Defaults.baseURL.text, "The base URL of WeChat's endpoints."),
            .optional("timeout", .duration, default: "5s", "The timeout of one call to WeChat."),
            .optional(
                "account_key", .choice(AccountKey.allCases.map(\.rawValue)),
                default: AccountKey.unionIDPreferred.rawValue, "The id that accounts are keyed by."),
            .optional(
                "allow_base_scope", .boolean, default: "false",
                "Whether a page of an official account may sign users in with the scope `snsapi_base`."),
            .optional("profile", .boolean, default: "true", "Whether nickname and avatar are fetched."),
            .optional(
                "lang", .choice(Language.allCases.map(\.rawValue)), default: Language.simplifiedChinese.rawValue,
                "The language of the profile data."),
            .optional(
                "decrypt", .boolean, default: "false",
                "Whether a mini-program's `encrypted_data` is decrypted; its claims are weaker than WeChat's responses."
            ),
            .optional("open_url", .url, default: Defaults.openURL.text, "The base URL of WeChat's pages for browsers."),
            .optional("web", .block(of: WebBlock.self), "Sign-in by redirect for browsers; absent: none."),
        ])
    }

    /// Checks that span several fields or entries.
    func validate(into diagnostics: inout Diagnostics) {
        for (key, url) in [("base_url", baseURL), ("open_url", openURL)] {
            if !url.value.isTrustworthy {
                diagnostics.error(
                    .configBadURL, at: url.location, "\(key): must be https, unless the host is a loopback address")
            }
            if url.value.text.contains("?") {
                diagnostics.error(.configBadURL, at: url.location, "\(key): must not have a query")
            }
        }
        web?.validate(apps, into: &diagnostics)
        var owners: [String: String] = [:]
        for entry in apps {
            validateName(entry.name, into: &diagnostics)
            entry.app.validate(into: &diagnostics)
            let id = entry.app.id.value.lowercased()
            if let owner = owners[id] {
                diagnostics.error(
                    .configDuplicateName, at: entry.app.id.location,
                    "app_id: app '\(entry.name.value)' has the same id as app '\(owner)'")
            }
            owners[id] = entry.name.value
        }
    }

    private func validateName(_ name: Located<String>, into diagnostics: inout Diagnostics) {
        let isName =
            (1...64).contains(name.value.utf8.count)
            && name.value.utf8.allSatisfy { "._-".utf8.contains($0) || isLetterOrDigit($0) }
        if !isName {
            diagnostics.error(
                .configBadValue, at: name.location, "apps: a name is 1 to 64 letters, digits, '_', '-' and '.'")
        }
    }
}
