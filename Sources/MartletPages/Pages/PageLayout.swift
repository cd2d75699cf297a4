/// The document around the content of each page.
struct PageLayout {
    private let context: PageContext
    private let isWide: Bool

    init(_ context: PageContext, isWide: Bool) {
        self.context = context
        self.isWide = isWide
    }

    func document(_ title: String, _ content: HTML) -> HTML {
        let site = context.site
        let isNamed = title.contains(site.title)
        return """
            <!doctype html>
            <html lang="\(context.choice.language.rawValue)">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta name="robots" content="noindex">
            <title>\(isNamed ? title : "\(title) · \(site.title)")</title>
            \(icon)\(HTML.style(site.stylesheet, nonce: context.nonce.text))
            </head>
            <body\(attribute: "class", isWide ? "wide" : nil)>
            <main>
            \(content)
            </main>
            \(footer)
            </body>
            </html>

            """
    }

    private var icon: HTML {
        guard let path = context.site.icon, PageURL.isAllowed(path) else { return .empty }
        return "<link rel=\"icon\" href=\"\(path)\">\n"
    }

    private var footer: HTML {
        let parts = [links, languages].compactMap(\.self)
        return parts.isEmpty ? .empty : "<footer>\n\(HTML.joined(parts, separator: "\n"))\n</footer>"
    }

    private var links: HTML? {
        let site = context.site
        guard !site.links.isEmpty else { return nil }
        let items = site.links.map { link -> HTML in
            "<li><a href=\"\(link.url)\">\(link.text(context.choice.language, standard: site.language))</a></li>"
        }
        let label = context.words(.navigationLinks, ["site": site.title])
        return "<nav aria-label=\"\(label)\"><ul>\(HTML.joined(items))</ul></nav>"
    }

    private var languages: HTML? {
        guard let path = context.path else { return nil }
        let items = PageLanguage.allCases.map { language -> HTML in
            let code = language.rawValue
            let isCurrent = language == context.choice.language
            let url = context.url(of: language, at: path)
            return """
                <li><a href="\(url)" lang="\(code)" hreflang="\(code)"\(attribute: "aria-current", isCurrent ? "true" : nil)>\
                \(language.name)</a></li>
                """
        }
        return "<nav aria-label=\"\(context.words(.navigationLanguage))\"><ul>\(HTML.joined(items))</ul></nav>"
    }
}
