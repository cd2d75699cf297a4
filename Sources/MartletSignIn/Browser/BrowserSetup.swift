package import MartletBrowser
package import MartletConfig
internal import MartletCore
package import MartletPages
package import MartletProvider
internal import MartletResponder
package import MartletSession

/// What the endpoints need for browsers: the configuration `browser:`, prepared.
package struct BrowserSetup: Sendable {
    let configuration: BrowserConfiguration
    let cookies: GatewayCookies
    let crossSite: CrossSiteRule
    let returns: ReturnRule
    let sessions: SessionStore
    let site: PageSite
    /// The images of pages, by the version in their path.
    let images: [String: PageLogo]
    private let faces: [String: PageFiles.ProviderFace]
    /// The path of the endpoints, without a final slash.
    let base: String
    private let key: SharedKey
    /// What a sign-in has to prove for a page of this site; `nil` where it need not prove more than who the user is.
    package var stepUp: @Sendable (ReturnTarget) -> StepUpRequirement? = { _ in nil }

    /// - Parameters:
    ///   - base: `sessions.path`.
    ///   - files: the logo, and templates that replace pages.
    ///   - key: from which those of forms and of sign-ins in progress are derived.
    package init(
        _ configuration: BrowserConfiguration, files: PageFiles = PageFiles(), base: String,
        sessions: SessionStore, key: SharedKey
    ) {
        self.configuration = configuration
        self.base = base
        self.sessions = sessions
        self.key = key
        cookies = GatewayCookies(configuration.cookie)
        crossSite = CrossSiteRule(origin: configuration.origin.value)
        returns = ReturnRule(
            origin: configuration.origin.value, otherOrigins: configuration.returnOrigins, signInPath: base)
        faces = files.faces
        let all = [files.logo, PageLogo.tab].compactMap(\.self) + files.faces.values.compactMap(\.icon)
        images = Dictionary(all.map { ($0.version, $0) }) { first, _ in first }
        site = PageSite(
            configuration, logo: files.logo.map { "\(base)/logo/\($0.version)" },
            icon: (files.logo ?? PageLogo.tab).map { "\(base)/logo/\($0.version)" }, templates: files.templates)
    }

    /// How pages show a provider.
    func kind(of provider: ProviderHandle) -> ProviderButton.Kind {
        switch provider.kind.rawValue {
        case "apple": return .apple
        case "wechat": return .weChat
        case "password" where faces[provider.name] == nil: return .password
        default:
            let face = faces[provider.name]
            return .other(label: face?.label ?? provider.name, icon: (face?.icon).map { "\(base)/logo/\($0.version)" })
        }
    }

    /// The URL of a provider's callback, as it is registered there.
    func callback(of provider: String) -> String { "\(configuration.origin.value)\(base)/callback/\(provider)" }

    /// - Throws: 503 if there is no key yet and the store is unavailable.
    func secrets() async throws(Failure) -> BrowserSecrets {
        let key = try await fromStore(await key.current())
        return BrowserSecrets(attempts: AttemptSeal(key: key), forms: FormTokens(key: key))
    }

    /// The token of the session cookie, where it is the credential of a request to one of the endpoints; `nil` without
    /// a session cookie.
    /// - Throws: 400 for a cookie beside another credential, 403 for a request that another site may have caused.
    func sessionCookie(of request: LocalRequest) throws(Failure) -> Secret? {
        let found = try BrowserCookies(request, cookies).checked(NavigationRule.isNavigation(request))
        guard let session = found.session else { return nil }
        guard request.field("Authorization") == nil else { throw .malformed(.signInTwoCredentials) }
        try checkSite(of: request)
        return session
    }

    /// - Throws: 403 for a request that another site may have caused, 400 for repeated fields.
    func checkSite(of request: LocalRequest) throws(Failure) {
        try fromBrowser(crossSite.check(method: request.method, fields: request.fields))
    }

    /// The `Set-Cookie` of a session's token.
    func sessionCookie(_ token: Secret) throws(Failure) -> String {
        try setting(cookies.session, to: token.withBytes { String(decoding: $0, as: UTF8.self) })
    }

    /// The `Set-Cookie` of a cookie.
    func setting(_ cookie: SetCookie, to value: String) throws(Failure) -> String {
        try fromBrowser(cookie.text(value))
    }
}

/// The secrets of forms and of sign-ins in progress.
struct BrowserSecrets: Sendable {
    let attempts: AttemptSeal
    let forms: FormTokens
}

extension GatewayCookies {
    /// The cookies of a configuration.
    package convenience init(_ configuration: BrowserCookieConfiguration) {
        self.init(
            name: configuration.name, isSecure: configuration.isSecure,
            sameSite: configuration.sameSite == .strict ? .strict : .lax, maximumAge: configuration.maximumAge)
    }
}

extension PageSite {
    init(_ configuration: BrowserConfiguration, logo: String?, icon: String?, templates: PageTemplates?) {
        let pages = configuration.pages
        self.init(
            title: pages.title ?? configuration.host, logo: logo, icon: icon,
            accent: pages.accent.flatMap { RGBColor($0) },
            links: pages.links.map { link in
                let texts = link.texts.map { (PageLanguage($0.key), $0.value) }
                return PageLink(texts: Dictionary(texts) { first, _ in first }, url: link.url)
            },
            language: PageLanguage(pages.defaultLanguage), templates: templates)
    }
}

extension PageLanguage {
    init(_ language: BrowserPagesConfiguration.Language) {
        switch language {
        case .english: self = .english
        case .simplifiedChinese: self = .simplifiedChinese
        case .traditionalChinese: self = .traditionalChinese
        }
    }
}

extension Failure {
    /// A request of a browser that breaks one of the rules for cookies, forms and sites.
    static func browser(_ error: BrowserError) -> Failure {
        switch error.code {
        case .browserCrossSite: crossSite(error.code)
        case .browserFormTokenInvalid, .browserFormTokenExpired: notAllowed(error.code)
        default: malformed(error.code)
        }
    }
}
