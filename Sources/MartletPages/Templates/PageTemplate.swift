/// A page of an operator's own, which shows the values of ours.
///
/// `{{name}}` is a value, escaped for its position. `{{#name}}…{{/name}}` is repeated for each element of a list, and
/// is there once for a text that is not empty; `{{^name}}…{{/name}}` is there for an empty one. `{{word.name}}` is a
/// sentence of ours in the language of the page, and `{{! … }}` is a comment.
package struct PageTemplate: Sendable {
    /// The page that a template is for; the raw value is the name of its file.
    package enum Name: String, Sendable, CaseIterable {
        case signIn = "sign-in.html"
        case register = "register.html"
        case message = "message.html"
        case signedOut = "signed-out.html"
        case account = "account.html"
    }

    /// More than any page needs.
    package static let maximumBytes = 256 * 1024

    /// A part of a template.
    indirect enum Node: Sendable {
        case literal(String)
        case text(String)
        case word(WordKey)
        /// An attribute that is dropped if its URL is not allowed; `prefix` is its name, `=` and a quote.
        case url(prefix: String, name: String, quote: String)
        case section(String, isInverted: Bool, [Node])
    }

    private let nodes: [Node]

    /// - Throws: the first error of the template.
    package init(_ bytes: [UInt8], for name: Name, file: String) throws(TemplateError) {
        var parser = try TemplateParser(bytes, TemplateSchema.schema(of: name), file: file)
        nodes = try parser.parse()
    }

    func render(_ values: [String: TemplateValue], _ words: Words) -> HTML {
        var text = ""
        Self.write(nodes, [values], words, to: &text)
        return HTML(markup: text)
    }

    private static func write(
        _ nodes: [Node], _ scopes: [[String: TemplateValue]], _ words: Words, to text: inout String
    ) {
        for node in nodes {
            switch node {
            case .literal(let literal): text += literal
            case .word(let key): text += HTML.escape(words(key))
            case .text(let name): text += HTML.escape(value(name, scopes))
            case .url(let prefix, let name, let quote):
                let url = value(name, scopes)
                if PageURL.isAllowed(url) { text += prefix + HTML.escape(url) + quote }
            case .section(let name, let isInverted, let content):
                for scope in elements(name, scopes, isInverted: isInverted) {
                    write(content, scopes + [scope], words, to: &text)
                }
            }
        }
    }

    private static func find(_ name: String, _ scopes: [[String: TemplateValue]]) -> TemplateValue? {
        scopes.reversed().lazy.compactMap { $0[name] }.first
    }

    private static func value(_ name: String, _ scopes: [[String: TemplateValue]]) -> String {
        if case .text(let text) = find(name, scopes) { text } else { "" }
    }

    private static func elements(
        _ name: String, _ scopes: [[String: TemplateValue]], isInverted: Bool
    ) -> [[String: TemplateValue]] {
        switch find(name, scopes) {
        case .list(let list): isInverted ? (list.isEmpty ? [[:]] : []) : list
        case .text(let text): text.isEmpty == isInverted ? [[:]] : []
        case nil: isInverted ? [[:]] : []
        }
    }
}
