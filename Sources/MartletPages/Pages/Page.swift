/// A page of the gateway: what it shows, without the request that it responds to.
package protocol Page: Sendable {
    /// Origins other than this one that its forms and their redirects lead to; `nil` where they are not known.
    var formOrigins: [String]? { get }
    /// The title of the document, which is also its heading.
    func title(in context: PageContext) -> String
    /// What is inside `main`.
    func content(in context: PageContext) -> HTML
    /// The template that may replace it; `nil` for a page that is always ours.
    var template: PageTemplate.Name? { get }
    /// The values of that template, besides those that all have.
    func values(in context: PageContext) -> TemplateValues
    /// Lists of forms need more width than one form.
    var isWide: Bool { get }
}

extension Page {
    package var formOrigins: [String]? { [] }
    package var isWide: Bool { false }
    package var template: PageTemplate.Name? { nil }

    /// Nothing, for a page without a template.
    package func values(in context: PageContext) -> TemplateValues { TemplateValues([:]) }

    /// The page as a document.
    package func render(in context: PageContext) -> RenderedPage {
        let document = template.flatMap { context.site.templates?[$0] }.map { own in
            let values = context.values(title(in: context)).merging(values(in: context).values) { $1 }
            return own.render(values, context.words)
        }
        let page = document ?? PageLayout(context, isWide: isWide).document(title(in: context), content(in: context))
        return RenderedPage(
            bytes: Array(page.text.utf8), nonce: context.nonce,
            fields: PageFields.fields(nonce: context.nonce, formOrigins: formOrigins))
    }
}

/// A page as it is sent.
package struct RenderedPage: Sendable {
    package let bytes: [UInt8]
    /// The nonce of its style element, which `fields` allow.
    package let nonce: PageNonce
    /// The fields of the response that the page needs.
    package let fields: [(name: String, value: String)]
}

/// What is the same on all pages of a configuration.
package struct PageSite: Sendable {
    /// The name of the application.
    package let title: String
    /// The path of the logo's endpoint; `nil` without a logo.
    package let logo: String?
    /// The path of the image in the browser's tab; `nil` lets browsers ask for `/favicon.ico`.
    package let icon: String?
    /// In the order of the configuration.
    package let links: [PageLink]
    package let language: PageLanguage
    /// The operator's own pages; `nil` shows ours.
    let templates: PageTemplates?
    /// The style sheet, made once for the accent color.
    let stylesheet: Stylesheet

    /// - Parameter accent: the color of buttons and links; `nil` is a blue.
    package init(
        title: String, logo: String? = nil, icon: String? = nil, accent: RGBColor? = nil, links: [PageLink] = [],
        language: PageLanguage = .english, templates: PageTemplates? = nil
    ) {
        self.templates = templates
        self.title = title
        self.logo = logo
        self.icon = icon
        self.links = links
        self.language = language
        stylesheet = PageStyle.stylesheet(accent: accent ?? PageStyle.accent)
    }
}

/// A link at the end of pages, with a text for each language.
package struct PageLink: Sendable, Equatable {
    package let texts: [PageLanguage: String]
    package let url: String

    package init(texts: [PageLanguage: String], url: String) {
        self.texts = texts
        self.url = url
    }

    /// The text in a language, or else in the first one that there is.
    func text(_ language: PageLanguage, standard: PageLanguage) -> String {
        let languages = [language, standard] + PageLanguage.allCases
        return languages.lazy.compactMap { texts[$0] }.first ?? url
    }
}

/// Whom a page is for, and when.
package struct PageContext: Sendable {
    package let site: PageSite
    package let choice: LanguageChoice
    package let nonce: PageNonce
    /// The path that the language switch leads to, with `lang` and `return_to`; `nil` shows no switch.
    package let path: String?
    /// Where the user is sent after signing in; already checked.
    package let returnTo: String?

    package init(
        site: PageSite, choice: LanguageChoice, path: String? = nil, returnTo: String? = nil,
        nonce: PageNonce = PageNonce()
    ) {
        self.site = site
        self.choice = choice
        self.path = path
        self.returnTo = returnTo
        self.nonce = nonce
    }

    package var words: Words { Words(choice.language) }

    /// The path of the page in another language.
    func url(of language: PageLanguage, at path: String) -> String {
        PageURL.local(path, [("lang", language.rawValue), ("return_to", returnTo)])
    }

    /// A path of this origin that keeps the language that the user chose.
    func localized(_ path: String) -> String {
        PageURL.local(path, [("lang", choice.isExplicit ? choice.language.rawValue : nil)])
    }
}
