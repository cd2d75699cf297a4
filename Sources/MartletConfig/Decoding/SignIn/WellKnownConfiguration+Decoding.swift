extension WellKnownConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "apple_app_site_association", .block(of: SiteAssociation.self),
                "Apps that share this host's passwords; served at `/.well-known/apple-app-site-association`."),
            .optional(
                "change_password", .pattern("^(https?://|/)"),
                "Where passwords are changed; `/.well-known/change-password` redirects there."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        webCredentialApps =
            reader.block("apple_app_site_association", as: SiteAssociation.self)?.apps ?? webCredentialApps
        changePasswordURL = reader.optional("change_password", as: RedirectTarget.self)?.text
    }
}

/// `apple_app_site_association:`, limited to shared web credentials.
struct SiteAssociation: ConfigurationDecodable {
    let apps: [String]

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "webcredentials", .list(.pattern("^[A-Z0-9]{10}\\.[A-Za-z0-9.-]+$"), nonEmpty: false), default: "[]",
                "`<application identifier prefix>.<bundle id>` of each app.")
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        apps = reader.optional("webcredentials", as: [AppIdentifier].self)?.map(\.text) ?? []
    }
}

/// `ABCDE12345.com.example.app`.
private struct AppIdentifier: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        let parts = text.utf8.split(separator: 0x2E, maxSplits: 1, omittingEmptySubsequences: false)
        let isPrefix = parts[0].count == 10 && parts[0].allSatisfy(Self.isPrefixByte)
        guard isPrefix, parts.count == 2, Self.isBundle(parts[1]) else {
            throw node.error(
                .configBadPattern,
                "\(quoted(text)) is not an app such as ABCDE12345.com.example.app: ten capitals or digits, then the bundle id"
            )
        }
    }

    private static func isPrefixByte(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x30...0x39).contains(byte)
    }

    private static func isBundle(_ bundle: Substring.UTF8View) -> Bool {
        (1...155).contains(bundle.count)
            && bundle.split(separator: 0x2E, omittingEmptySubsequences: false).allSatisfy { part in
                !part.isEmpty && part.allSatisfy { isPrefixByte($0) || (0x61...0x7A).contains($0) || $0 == 0x2D }
            }
    }
}

/// A redirect target for browsers; it comes from the configuration only, never from a request.
private struct RedirectTarget: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        // `//host` and `/\host` are absolute URLs of another host to a browser.
        let isPath =
            text.hasPrefix("/") && !text.hasPrefix("//") && text.utf8.count <= 2048
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"\"<>\\^`{|}#".utf8.contains($0) }
        guard isPath || URLText(text)?.isTrustworthy == true else {
            throw node.error(
                .configBadURL,
                "must be an https URL or a path such as /account/password, without user information or '#'")
        }
    }
}
