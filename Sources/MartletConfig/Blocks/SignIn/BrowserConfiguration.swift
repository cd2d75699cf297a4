private import MartletCore

/// `browser:` — sign-in pages, and sessions in cookies.
@frozen package struct BrowserConfiguration: KeyedBlock {
    /// Where the key stands.
    package var location = SourceLocation.none
    package var origin = Located<String>.unread
    package var cookie = BrowserCookieConfiguration()
    package var returnOrigins: [String] = []
    /// URLs of apps, compared byte by byte.
    package var nativeRedirects: [String] = []
    package var pages = BrowserPagesConfiguration()
    package var registers = false
    /// Where that stands.
    package var registersLocation = SourceLocation.none
    package var start: Located<String>?

    /// The host of the origin, without the port and without brackets.
    package var host: String { URLText(origin.value)?.host ?? "" }

    static let keys: [ConfigurationKey<Self>] = [
        .required(
            "origin", \.origin, as: Located<WebOrigin>.self, shape: .pattern("^https?://[^/?#@]+$"), endsBlock: true,
            "The public origin, from which every absolute URL is built; `http` only of a loopback address."),
        .block("cookie", \.cookie, "The session's cookie."),
        .key(
            "return_to", \.returnOrigins, as: [WebOrigin].self,
            shape: .list(.pattern("^https?://"), nonEmpty: false),
            "Exact origins, besides the own one, that a browser may return to."),
        .key(
            "native_redirects", \.nativeRedirects, as: [NativeRedirect].self,
            shape: .list(.pattern("^([a-z][a-z0-9+-]*\\.[a-z0-9.+-]*:/|https://|http://)"), nonEmpty: false),
            "Exact URLs of apps: of a scheme of their own with a dot, `https`, or `http` of a loopback address, which without a port is that of any port."
        ),
        .block("pages", \.pages, "How the sign-in pages look."),
        .key(
            "start", \.start,
            "The provider that browsers without a session are sent to immediately, instead of the sign-in page."),
        .key(
            "register", \.registers,
            "Whether the form for passwords may create accounts; it needs a provider of the kind `password` with `users: accounts`."
        ),
        .check(always: true) { browser, reader in
            browser.registersLocation = reader.node("register")?.location ?? reader.location
            for node in reader.given("return_to")?.elements ?? [] {
                guard let origin = try? WebOrigin(decoding: node), !origin.isTrustworthy else { continue }
                reader.diagnostics.warning(
                    .configInsecure, at: node.location, "return_to: a page loaded in clear text can be forged")
            }
        },
        .check { browser, reader throws(ConfigurationError) in
            guard let origin = URLText(browser.origin.value), origin.isTrustworthy else {
                throw ConfigurationError(
                    .configBadURL, at: browser.origin.location,
                    "origin: must be https: http is accepted only of a loopback address such as http://127.0.0.1:8080")
            }
            browser.cookie.complete(isSecure: origin.scheme == "https", at: reader.node("cookie")?["name"], &reader)
        },
    ]
}

/// `browser.cookie:` — the session's cookie.
@frozen package struct BrowserCookieConfiguration: KeyedBlock, Equatable {
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

    /// Browsers keep no cookie for longer.
    private static let longest = Duration.seconds(400 * 86_400)

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "name", \.name,
            where: TextRule(
                .configBadValue, isName, { _ in "must have 1 to \(maximumNameBytes) characters of a cookie's name" }),
            default: .none, "The cookie's name; `__Host-martlet` if absent, `martlet` for an `http` origin."),
        .key("same_site", \.sameSite, "`strict` also drops the cookie when a link of another site leads here."),
        .key(
            "max_age", \.maximumAge, in: .zero...longest,
            "How long browsers keep it, up to 400d; `0s` until they are closed."),
        .check { $1.checkWholeSeconds($0.maximumAge, of: "max_age") },
    ]

    /// Adds what depends on the origin; a name whose prefix the origin cannot have is an error.
    fileprivate mutating func complete(
        isSecure: Bool, at node: ConfigurationNode?, _ reader: inout ConfigurationReader
    ) {
        self.isSecure = isSecure
        guard !name.isEmpty, let node else {
            name = isSecure ? "__Host-martlet" : "martlet"
            return
        }
        if !isSecure, Self.needsTLS(name) {
            reader.error(
                .configBadValue, at: node.location,
                "name: browsers accept \(quoted(name)) over https only: leave the prefix out on loopback")
        }
        if isSecure, !name.lowercased().hasPrefix("__host-") {
            reader.diagnostics.warning(
                .configInsecure, at: node.location,
                "name: without the prefix '__Host-' a page of another subdomain can set this cookie")
        }
    }

    private static func isName(_ name: String) -> Bool {
        (1...maximumNameBytes).contains(name.utf8.count)
            && name.utf8.allSatisfy(HeaderName.isTokenByte)
    }

    /// RFC 6265bis §4.1.3; browsers compare the prefixes in any letter case.
    private static func needsTLS(_ name: String) -> Bool {
        ["__host-", "__secure-", "__http-", "__host-http-"].contains { name.lowercased().hasPrefix($0) }
    }
}

extension ConfigurationReader {
    /// Records an error if an age that browsers read in seconds would be a fraction of one.
    mutating func checkWholeSeconds(_ age: Duration, of key: String) {
        guard age > .zero, age < .seconds(1) else { return }
        reject(key, .configBadDuration, "must be 0s, or at least 1s")
    }
}
