/// `browser.pages:` — how the sign-in pages look.
@frozen package struct BrowserPagesConfiguration: KeyedBlock {
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
    package var templateFolder: Located<FilePath>?

    private static let maximumLinks = 8

    static let keys: [ConfigurationKey<Self>] = [
        .key("title", \.title, where: .label, "What the pages call this service, up to 64 characters."),
        .key("logo_file", \.logo, "An SVG, PNG, JPEG or WebP file, up to 256 KiB."),
        .key(
            "accent", \.accent, as: AccentColor?.self, "The color of buttons, `\"#0a7\"` or `\"#00aa77\"`, in quotes."),
        .blocks("links", \.links, "Links at the bottom of the pages, such as to a privacy policy; up to 8."),
        .key(
            "default_language", \.defaultLanguage,
            "The language for browsers that prefer none of the pages' languages."),
        .key("template_dir", \.templateFolder, "A folder with templates that replace the built-in pages."),
        .check { pages, reader in
            let links = reader.node("links")?.elements ?? []
            guard pages.links.count > maximumLinks else { return }
            reader.error(
                .configBadValue, at: links[maximumLinks].location, "links: at most \(maximumLinks)")
        },
    ]
}

extension TextRule {
    private static let maximumLabel = 64

    /// A name that people read.
    static let label = TextRule(
        .configBadValue, { (1...maximumLabel).contains($0.unicodeScalars.count) },
        { _ in "must have 1 to \(maximumLabel) characters" })
}

extension BrowserPagesConfiguration.Link: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .row(
            .required("text", .block(of: LinkTexts.self), "The text, by language; at least one."), endsBlock: true
        ) { link, reader throws(ConfigurationError) in
            link.texts = try reader.requiredBlock("text", as: LinkTexts.self).texts
        },
        .required("url", \.url, as: LinkURL.self, "A path of this gateway, such as `/privacy`, or an `https` URL."),
    ]

    /// `text:` of a link.
    private struct LinkTexts: KeyedBlock {
        var texts: [BrowserPagesConfiguration.Language: String] = [:]

        static let keys: [ConfigurationKey<Self>] =
            BrowserPagesConfiguration.Language.allCases.map { language in
                .key(
                    language.rawValue, \.texts[language], where: .label,
                    "The text on pages in this language, up to 64 characters.")
            } + [
                .check { _, reader in
                    guard reader.keys.isEmpty else { return }
                    reader.error(.configMissingKey, at: reader.location, "text: needs at least one language")
                }
            ]
    }
}

/// The address of a link: a path, or a URL whose page cannot be forged.
private struct LinkURL: TextSpelling {
    static let shape = ConfigurationGrammar.Shape.pattern("^(/|https?://)")
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        let isPath =
            text.hasPrefix("/") && !text.hasPrefix("//") && text.utf8.count <= 2048
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"\"<>\\^`{|}".utf8.contains($0) }
        // The fragment is not part of a `URLText`.
        let url = text.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        guard isPath || URLText(String(url))?.isTrustworthy ?? false else {
            throw node.error(.configBadURL, "must be a path such as /privacy, or an https URL")
        }
    }
}

/// `#rgb` or `#rrggbb`.
private struct AccentColor: TextSpelling {
    static let shape = ConfigurationGrammar.Shape.pattern("^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$")
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let written = try node.text()
        let digits = written.utf8.dropFirst()
        guard written.hasPrefix("#"), digits.count == 3 || digits.count == 6,
            digits.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) })
        else {
            throw node.error(
                .configBadValue, "\(quoted(written)) is not a color such as \"#0a7\" or \"#00aa77\" in quotes")
        }
        let full = digits.count == 6 ? Array(digits) : digits.flatMap { [$0, $0] }
        text = "#\(String(decoding: full, as: UTF8.self).lowercased())"
    }
}
