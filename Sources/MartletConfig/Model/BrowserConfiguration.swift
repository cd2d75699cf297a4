/// `browser:` — sign-in pages, and sessions in cookies.
@frozen package struct BrowserConfiguration: Sendable {
    /// Where the key stands.
    package var location: SourceLocation
    /// The public origin as browsers write it: `https`, or `http` of a loopback address.
    package var origin: Located<String>
    package var cookie = BrowserCookieConfiguration()
    /// Other origins that a browser may return to, as browsers write them.
    package var returnOrigins: [String] = []
    /// URLs of apps, compared byte by byte.
    package var nativeRedirects: [String] = []
    package var pages = BrowserPagesConfiguration()
    /// Whether the form for passwords may create accounts.
    package var registers = false
    /// Where that stands.
    package var registersLocation: SourceLocation
    /// The provider that browsers are sent to instead of the page for signing in; `nil` shows the page.
    package var start: Located<String>?

    /// The host of the origin, without the port and without brackets.
    package var host: String { URLText(origin.value)?.host ?? "" }
}

/// `browser.cookie:` — the session's cookie.
@frozen package struct BrowserCookieConfiguration: Sendable, Equatable {
    /// From where the cookie is sent along.
    @frozen package enum SameSite: String, ConfigurationChoice { case lax, strict }

    /// The longest name: with what follows it in the names of other cookies it stays short.
    static let maximumNameBytes = 64

    /// Empty until the origin is known, which the default depends on.
    package var name = ""
    /// Whether it is sent over `https` alone: always, except on loopback.
    package var isSecure = true
    package var sameSite = SameSite.lax
    /// In whole seconds; 0 for a cookie that ends with the browser.
    package var maximumAge = Duration.seconds(30 * 86_400)
}

/// `browser.pages:` — how the sign-in pages look.
@frozen package struct BrowserPagesConfiguration: Sendable {
    /// The languages that the pages have.
    @frozen package enum Language: String, ConfigurationChoice {
        case english = "en"
        case simplifiedChinese = "zh-Hans"
        case traditionalChinese = "zh-Hant"
    }

    /// A link at the bottom of every page.
    @frozen package struct Link: Sendable, Equatable {
        /// At least one.
        package var texts: [Language: String] = [:]
        /// A path of this gateway, or an `https` URL.
        package var url = ""

        /// The text in a language, or in the one that it has instead.
        package func text(in language: Language, else fallback: Language) -> String {
            texts[language] ?? texts[fallback] ?? Language.allCases.lazy.compactMap { texts[$0] }.first ?? url
        }
    }

    /// `nil`: the pages' own title.
    package var title: String?
    package var logo: Located<FilePath>?
    /// `#rrggbb` in lower case; `nil` for the pages' own.
    package var accent: String?
    package var links: [Link] = []
    package var defaultLanguage = Language.english
    /// A folder with templates instead of the built-in pages.
    package var templateFolder: Located<FilePath>?

    package init() {}
}
