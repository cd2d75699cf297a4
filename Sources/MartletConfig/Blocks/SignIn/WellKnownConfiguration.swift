/// `well_known:` — documents under `/.well-known/` for app platforms.
@frozen package struct WellKnownConfiguration: KeyedBlock, Equatable {
    /// `<prefix>.<bundle id>` of the apps that share this host's passwords; empty serves no document.
    package var webCredentialApps: [String] = []
    /// Where passwords are changed; `nil` serves no redirect.
    package var changePasswordURL: String?

    package init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .block(
            "apple_app_site_association",
            "Apps that share this host's passwords; served at `/.well-known/apple-app-site-association`.",
            [
                .key(
                    "webcredentials", \.webCredentialApps, as: [AppIdentifier].self,
                    "`<application identifier prefix>.<bundle id>` of each app.")
            ]),
        .key(
            "change_password", \.changePasswordURL, shape: .pattern("^(https?://|/)"), where: .redirectTarget,
            "Where passwords are changed; `/.well-known/change-password` redirects there."),
    ]
}

/// `ABCDE12345.com.example.app`.
private struct AppIdentifier: TextSpelling {
    static let shape = ConfigurationGrammar.Shape.pattern("^[A-Z0-9]{10}\\.[A-Za-z0-9.-]+$")
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

extension TextRule {
    /// A redirect target for browsers; it comes from the configuration only, never from a request.
    fileprivate static let redirectTarget = TextRule(
        .configBadURL,
        { text in
            // `//host` and `/\host` are absolute URLs of another host to a browser.
            let isPath =
                text.hasPrefix("/") && !text.hasPrefix("//") && text.utf8.count <= 2048
                && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"\"<>\\^`{|}#".utf8.contains($0) }
            return isPath || URLText(text)?.isTrustworthy == true
        }, { _ in "must be an https URL or a path such as /account/password, without user information or '#'" })
}
