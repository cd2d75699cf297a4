extension BrowserPagesConfiguration.Language: ConfigurationValue {}

extension BrowserPagesConfiguration: ConfigurationDecodable {
    private static let maximumTitle = 64
    private static let maximumLinks = 8

    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("title", .text, "What the pages call this service, up to 64 characters."),
            .optional("logo_file", .path, "An SVG, PNG, JPEG or WebP file, up to 256 KiB."),
            .optional(
                "accent", .pattern("^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
                "The color of buttons, `\"#0a7\"` or `\"#00aa77\"`, in quotes."),
            .optional(
                "links", .list(.block(of: Link.self), nonEmpty: false), default: "[]",
                "Links at the bottom of the pages, such as to a privacy policy; up to 8."),
            .optional(
                "default_language", .choice(Language.allCases.map(\.rawValue)), default: "en",
                "The language for browsers that prefer none of the pages' languages."),
            .optional("template_dir", .path, "A folder with templates that replace the built-in pages."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        title = reader.optional("title", as: Located<String>.self).flatMap { Self.title($0, &reader) }
        logo = reader.optional("logo_file")
        accent = reader.optional("accent", as: AccentColor.self)?.text
        let links = reader.blocks("links", as: Link.self)
        self.links = links.map(\.value)
        if links.count > Self.maximumLinks {
            reader.error(
                .configBadValue, at: links[Self.maximumLinks].location, "links: at most \(Self.maximumLinks)")
        }
        defaultLanguage = reader.optional("default_language", default: defaultLanguage)
        templateFolder = reader.optional("template_dir")
    }

    private static func title(_ title: Located<String>, _ reader: inout ConfigurationReader) -> String? {
        guard (1...maximumTitle).contains(title.value.unicodeScalars.count) else {
            reader.error(
                .configBadValue, at: title.location, "title: must have 1 to \(maximumTitle) characters")
            return nil
        }
        return title.value
    }
}

extension BrowserPagesConfiguration.Link: ConfigurationDecodable {
    private static let maximumText = 64

    package static var grammar: ConfigurationGrammar? {
        .init([
            .required("text", .block(of: LinkTexts.self), "The text, by language; at least one."),
            .required(
                "url", .pattern("^(/|https?://)"), "A path of this gateway, such as `/privacy`, or an `https` URL."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let url = reader.expected("url", as: LinkURL.self)
        texts = try reader.requiredBlock("text", as: LinkTexts.self).texts
        guard let url else { throw .alreadyReported }
        self.url = url.text
    }

    /// `text:` of a link.
    private struct LinkTexts: ConfigurationDecodable {
        let texts: [BrowserPagesConfiguration.Language: String]

        static var grammar: ConfigurationGrammar? {
            .init(
                BrowserPagesConfiguration.Language.allCases.map {
                    .optional($0.rawValue, .text, "The text on pages in this language, up to 64 characters.")
                })
        }

        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            var texts: [BrowserPagesConfiguration.Language: String] = [:]
            for language in BrowserPagesConfiguration.Language.allCases {
                guard let text = reader.optional(language.rawValue, as: Located<String>.self) else { continue }
                texts[language] = text.value
                if !(1...maximumText).contains(text.value.unicodeScalars.count) {
                    reader.error(
                        .configBadValue, at: text.location,
                        "\(language.rawValue): must have 1 to \(maximumText) characters")
                }
            }
            if reader.keys.isEmpty {
                reader.error(.configMissingKey, at: reader.location, "text: needs at least one language")
            }
            self.texts = texts
        }
    }
}

/// The address of a link: a path, or a URL whose page cannot be forged.
private struct LinkURL: ConfigurationValue {
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
private struct AccentColor: ConfigurationValue {
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
