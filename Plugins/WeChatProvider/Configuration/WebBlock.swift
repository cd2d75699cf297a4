internal import MartletConfig
internal import MartletCore

/// `web`: the applications with which browsers sign in by redirect.
struct WebBlock: ConfigurationDecodable {
    /// The entry of `apps` for browsers outside WeChat; `nil` if none signs in.
    let app: Located<String>?
    /// The entry of `apps` for WeChat's own browser; `nil` if it does not sign in.
    let officialAccount: Located<String>?
    private let location: SourceLocation

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        app = reader.optional("app")
        officialAccount = reader.optional("official_account")
        location = reader.location
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("app", .text, "The entry of `apps`, a `website`, whose QR code browsers outside WeChat show."),
            .optional(
                "official_account", .text,
                "The entry of `apps`, an `official_account`, whose page WeChat's own browser shows."),
        ])
    }

    /// Checks that the entries exist and are of the right variant.
    func validate(_ apps: [WeChatConfiguration.NamedApp], into diagnostics: inout Diagnostics) {
        if app == nil, officialAccount == nil {
            diagnostics.error(.configMissingKey, at: location, "web: needs 'app' or 'official_account'")
        }
        let wanted: [(key: String, name: Located<String>?, variant: WeChatApp.Variant)] = [
            ("app", app, .website), ("official_account", officialAccount, .officialAccount),
        ]
        for (key, name, variant) in wanted {
            guard let name else { continue }
            guard let entry = apps.first(where: { $0.clientName.hasSameBytes(as: name.value) }) else {
                diagnostics.error(.configBadValue, at: name.location, "web.\(key): is no entry of 'apps'")
                continue
            }
            if entry.variant != variant {
                diagnostics.error(
                    .configBadValue, at: name.location,
                    "web.\(key): must be an app with 'variant: \(variant.rawValue)', not \(entry.variant.rawValue)")
            }
        }
    }
}
