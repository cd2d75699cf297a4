private import MartletCore

extension BrowserConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .required(
                "origin", .pattern("^https?://[^/?#@]+$"),
                "The public origin, from which every absolute URL is built; `http` only of a loopback address."),
            .optional("cookie", .block(of: BrowserCookieRules.self), default: "{}", "The session's cookie."),
            .optional(
                "return_to", .list(.pattern("^https?://"), nonEmpty: false), default: "[]",
                "Exact origins, besides the own one, that a browser may return to."),
            .optional(
                "native_redirects",
                .list(.pattern("^([a-z][a-z0-9+-]*\\.[a-z0-9.+-]*:/|https://|http://)"), nonEmpty: false),
                default: "[]",
                "Exact URLs of apps: of a scheme of their own with a dot, `https`, or `http` of a loopback address, which without a port is that of any port."
            ),
            .optional(
                "pages", .block(of: BrowserPagesConfiguration.self), default: "{}", "How the sign-in pages look."),
            .optional(
                "start", .text,
                "The provider that browsers without a session are sent to immediately, instead of the sign-in page."),
            .optional(
                "register", .boolean, default: "false",
                "Whether the form for passwords may create accounts; it needs a provider of the kind `password` with `users: accounts`."
            ),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        location = reader.location
        let rules = reader.block("cookie") ?? BrowserCookieRules()
        let origins = reader.optional("return_to", as: [Located<WebOrigin>].self) ?? []
        returnOrigins = origins.map(\.value.text)
        for origin in origins where !origin.value.isTrustworthy {
            reader.diagnostics.warning(
                .configInsecure, at: origin.location, "return_to: a page loaded in clear text can be forged")
        }
        nativeRedirects = reader.optional("native_redirects", as: [NativeRedirect].self)?.map(\.text) ?? []
        pages = reader.block("pages") ?? BrowserPagesConfiguration()
        start = reader.optional("start")
        let registers: Located<Bool> = reader.optional("register", default: Located(false, at: location))
        self.registers = registers.value
        registersLocation = registers.location
        let origin = try reader.required("origin", as: Located<WebOrigin>.self)
        guard origin.value.isTrustworthy else {
            throw ConfigurationError(
                .configBadURL, at: origin.location,
                "origin: must be https: http is accepted only of a loopback address such as http://127.0.0.1:8080")
        }
        self.origin = Located(origin.value.text, at: origin.location)
        cookie = rules.configuration(isSecure: origin.value.isSecure, &reader.diagnostics)
    }
}

/// `cookie:` of `browser`.
private struct BrowserCookieRules: KeyedBlock {
    /// Browsers keep no cookie for longer.
    private static let longest = Duration.seconds(400 * 86_400)

    var name: Located<String>?
    var sameSite = BrowserCookieConfiguration.SameSite.lax
    var maximumAge = Duration.seconds(30 * 86_400)

    init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "name", \.name,
            where: TextRule(
                .configBadValue, isName,
                { _ in "must have 1 to \(BrowserCookieConfiguration.maximumNameBytes) characters of a cookie's name" }),
            "The cookie's name; `__Host-martlet` if absent, `martlet` for an `http` origin."),
        .key("same_site", \.sameSite, "`strict` also drops the cookie when a link of another site leads here."),
        .key(
            "max_age", \.maximumAge, in: .zero...longest,
            "How long browsers keep it, up to 400d; `0s` until they are closed."),
        .check { $1.checkWholeSeconds($0.maximumAge, of: "max_age") },
    ]

    /// The cookie of an origin; a name whose prefix the origin cannot have is an error.
    func configuration(isSecure: Bool, _ diagnostics: inout Diagnostics) -> BrowserCookieConfiguration {
        if let name, !isSecure, Self.needsTLS(name.value) {
            diagnostics.error(
                .configBadValue, at: name.location,
                "name: browsers accept \(quoted(name.value)) over https only: leave the prefix out on loopback")
        }
        if let name, isSecure, !name.value.lowercased().hasPrefix("__host-") {
            diagnostics.warning(
                .configInsecure, at: name.location,
                "name: without the prefix '__Host-' a page of another subdomain can set this cookie")
        }
        return BrowserCookieConfiguration(
            name: name?.value ?? (isSecure ? "__Host-martlet" : "martlet"), isSecure: isSecure, sameSite: sameSite,
            maximumAge: maximumAge)
    }

    private static func isName(_ name: String) -> Bool {
        (1...BrowserCookieConfiguration.maximumNameBytes).contains(name.utf8.count)
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
        guard let node = node(key), age > .zero, age < .seconds(1) else { return }
        error(.configBadDuration, at: node.location, "\(key): must be 0s, or at least 1s")
    }
}
