public import MartletConfig
internal import MartletCore

/// The block of a provider whose `kind` is `wechat`.
public struct WeChatConfiguration: ConfigurationDecodable {
    /// By what a person is known.
    public enum AccountKey: String, Sendable, CaseIterable, ConfigurationValue {
        /// By the unionid where WeChat tells it, by the openid until then.
        case unionIDPreferred = "unionid_preferred"
        /// By the unionid; who has none cannot sign in.
        case unionIDRequired = "unionid_required"
        /// By the openid: one person is somebody else in each app.
        case openID = "openid"
    }

    /// The language of what WeChat says about a person.
    public enum Language: String, Sendable, CaseIterable, ConfigurationValue {
        case simplifiedChinese = "zh_CN"
        case traditionalChinese = "zh_TW"
        case english = "en"
    }

    /// An application under the name that clients call it by.
    public struct NamedApp: Sendable {
        public let name: Located<String>
        public let app: WeChatApp

        /// The values without their places.
        var clientName: String { name.value }
        var variant: WeChatApp.Variant { app.variant.value }
        var id: String { app.id.value }
        var secret: Secret { app.secret.value }
    }

    /// Never empty.
    public let apps: [NamedApp]
    /// Where WeChat's endpoints are.
    public let baseURL: Located<URLText>
    /// Of one call to WeChat.
    public let timeout: Duration
    public let accountKey: AccountKey
    /// Whether pages of an official account may sign people in without their consent to tell more than an openid.
    public let allowsBaseScope: Bool
    /// Whether nickname and avatar are asked for.
    public let asksForProfile: Bool
    public let language: Language
    /// Whether a mini-program's encrypted data is read.
    public let decrypts: Bool

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        baseURL = reader.optional("base_url", default: Located(Defaults.baseURL, at: reader.location))
        timeout = reader.optional("timeout", default: Defaults.timeout, in: .milliseconds(100) ... .seconds(60))
        accountKey = reader.optional("account_key", default: .unionIDPreferred)
        allowsBaseScope = reader.optional("allow_base_scope", default: false)
        asksForProfile = reader.optional("profile", default: true)
        language = reader.optional("lang", default: .simplifiedChinese)
        decrypts = reader.optional("decrypt", default: false)
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
            .optional("base_url", .url, default: Defaults.baseURL.text, "Where WeChat's endpoints are."),
            .optional("timeout", .duration, default: "5s", "How long one call to WeChat may take."),
            .optional(
                "account_key", .choice(AccountKey.allCases.map(\.rawValue)),
                default: AccountKey.unionIDPreferred.rawValue, "By what a person is known."),
            .optional(
                "allow_base_scope", .boolean, default: "false",
                "Whether a page of an official account may sign people in with the scope `snsapi_base`."),
            .optional("profile", .boolean, default: "true", "Whether nickname and avatar are asked for."),
            .optional(
                "lang", .choice(Language.allCases.map(\.rawValue)), default: Language.simplifiedChinese.rawValue,
                "The language of what WeChat says about a person."),
            .optional(
                "decrypt", .boolean, default: "false",
                "Whether a mini-program's `encrypted_data` is read; what it says is weaker than what WeChat answers."),
        ])
    }

    /// What no single field can show.
    func validate(into diagnostics: inout Diagnostics) {
        if !baseURL.value.isTrustworthy {
            diagnostics.error(
                .configBadURL, at: baseURL.location, "base_url: must be https, unless the host is a loopback address")
        }
        if baseURL.value.text.contains("?") {
            diagnostics.error(.configBadURL, at: baseURL.location, "base_url: must have no query")
        }
        var owners: [String: String] = [:]
        for entry in apps {
            validateName(entry.name, into: &diagnostics)
            entry.app.validate(into: &diagnostics)
            let id = entry.app.id.value.lowercased()
            if let owner = owners[id] {
                diagnostics.error(
                    .configDuplicateName, at: entry.app.id.location,
                    "app_id: app '\(entry.name.value)' has the id of app '\(owner)'")
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
