/// What a template may name: the values of a page, or of one element of a list.
struct TemplateSchema: Sendable {
    /// What a value is.
    indirect enum Kind: Sendable {
        case text
        case url
        /// Repeated for each element; a single thing that may be absent is a list of at most one.
        case list(TemplateSchema)
    }

    let names: [String: Kind]

    private init(_ names: [String: Kind]) { self.names = names }

    private static func texts(
        _ texts: String..., urls: [String] = [], lists: [String: TemplateSchema] = [:]
    ) -> TemplateSchema {
        var names: [String: Kind] = [:]
        for name in texts { names[name] = .text }
        for name in urls { names[name] = .url }
        for (name, schema) in lists { names[name] = .list(schema) }
        return TemplateSchema(names)
    }

    /// The values of a page.
    static func schema(of template: PageTemplate.Name) -> TemplateSchema {
        let own =
            switch template {
            case .signIn: signIn
            case .register: register
            case .message: message
            case .signedOut: texts("text", urls: ["sign_in"])
            case .account: account
            }
        return TemplateSchema(common.names.merging(own.names) { $1 })
    }

    /// Whether forms of the page need its token.
    var hasToken: Bool {
        names.contains { name, kind in
            if case .list(let inner) = kind { return inner.hasToken }
            return name == "csrf"
        }
    }

    private static let notice = texts("text", "kind", "request_id")
    private static let common = texts(
        "heading", "site", "language", "nonce", "return_to", urls: ["logo"],
        lists: [
            "links": texts("text", urls: ["url"]), "languages": texts("name", "code", "current", urls: ["url"]),
        ])
    private static let signIn = texts(
        urls: ["registration"],
        lists: [
            "notice": notice, "providers": texts("name", "kind", "label", urls: ["url"]),
            "password": texts("csrf", "username", "invalid", urls: ["action", "forgot"]),
        ])
    private static let register = texts(
        "csrf", "username", "username_error", "password_error", "password_hint", "by_mail", "asks_name", "name",
        "name_error", urls: ["action", "sign_in"],
        lists: ["notice": notice])
    private static let message = texts("text", "request_id", "account", "name", urls: ["sign_in", "sign_out"])
    private static let account = texts(
        "name", "csrf", urls: ["sign_out"],
        lists: [
            "notice": notice,
            "identities": texts(
                "provider", "kind", "name", "linked", "used", "revoked", "unlink_label", urls: ["unlink"]),
            "linkable": texts("provider", "kind", "link_label", urls: ["action"]),
            "sessions": texts(
                "device", "location", "signed_in", "used", "provider", "current", "end_label", urls: ["end"]),
            "password": texts("username", "hint", "current_error", "new_error", urls: ["action"]),
            "deletion": texts("text", "unconfirmed", urls: ["action", "sign_in"]),
        ])
}

/// The values of a page for its template.
package struct TemplateValues: Sendable {
    let values: [String: TemplateValue]

    init(_ values: [String: TemplateValue]) { self.values = values }
}

/// A value of a page for its template.
enum TemplateValue: Sendable {
    /// For texts and URLs. An empty one counts as absent in sections.
    case text(String)
    case list([[String: TemplateValue]])

    init(_ text: String?) { self = .text(text ?? "") }

    /// One element, or none.
    init(_ element: [String: TemplateValue]?) { self = .list(element.map { [$0] } ?? []) }

    /// A mark that is there or not.
    init(_ isSet: Bool) { self = .text(isSet ? "true" : "") }
}
