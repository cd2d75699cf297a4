/// The parts that several pages have.
struct PageComponents {
    private let context: PageContext

    init(_ context: PageContext) { self.context = context }

    /// The logo and the heading.
    func heading(_ title: String) -> HTML {
        "<div class=\"heading\">\(logo)<h1>\(title)</h1></div>"
    }

    /// The logo, which only decorates: the heading has the name.
    var logo: HTML {
        guard let path = context.site.logo, PageURL.isAllowed(path) else { return .empty }
        return "<img class=\"logo\" src=\"\(path)\" alt=\"\" width=\"56\" height=\"56\">"
    }

    /// A message, with the identifier that fields point to.
    func notice(_ text: String, _ kind: NoticeKind, requestID: String? = nil) -> HTML {
        let icon = kind == .success ? PageIcons.check : PageIcons.attention
        return """
            <div class="notice \(kind.rawValue)" id="notice" role="\(kind == .error ? "alert" : "status")">\(icon)\
            <div><p>\(text)</p>\(reference(requestID))</div></div>
            """
    }

    /// The identifier that support can find in the log.
    func reference(_ requestID: String?) -> HTML {
        guard let requestID else { return .empty }
        return "<p class=\"reference\">\(context.words(.requestID)): <code>\(requestID)</code></p>"
    }

    /// A form that posts, with its token and the fields of it.
    /// - Parameter csrf: `nil` for a form that needs no token.
    func form(
        _ action: String, csrf: String?, style classes: String? = nil, hidden: [(String, String?)] = [], _ content: HTML
    )
        -> HTML
    {
        let fields = ([("csrf", csrf)] + hidden).map { name, value -> HTML in
            guard let value else { return .empty }
            return "<input type=\"hidden\" name=\"\(name)\" value=\"\(value)\">"
        }
        return """
            <form method="post" action="\(context.localized(action))"\(attribute: "class", classes)>\
            \(HTML.joined(fields))
            \(content)
            </form>
            """
    }

    func field(_ field: FormField) -> HTML {
        // An error says what the hint does.
        let hint = field.error == nil ? field.hint : nil
        let messages = [field.error == nil ? nil : "\(field.id)-error", hint == nil ? nil : "\(field.id)-hint"]
        let described = ([field.isDescribedByNotice ? "notice" : nil] + messages).compactMap(\.self)
        let isInvalid = field.error != nil || field.isInvalid
        let type = field.type
        let isName = type != "password"
        return """
            <div class="field">
            <label for="\(field.id)">\(field.label)</label>
            <input id="\(field.id)" name="\(field.name)" type="\(type)"\
            \(attribute: "value", field.value) autocomplete="\(field.autocomplete)" required\
            \(attribute: "autocapitalize", isName ? "none" : nil)\(attribute: "spellcheck", isName ? "false" : nil)\
            \(attribute: "aria-invalid", isInvalid ? "true" : nil)\
            \(attribute: "aria-describedby", described.isEmpty ? nil : described.joined(separator: " "))\
            \(flag: "autofocus", isInvalid)>
            \(message(field.error, "error", field.id))\(message(hint, "hint", field.id))
            </div>
            """
    }

    private func message(_ text: String?, _ kind: String, _ id: String) -> HTML {
        guard let text else { return .empty }
        return "<p class=\"\(kind)\" id=\"\(id)-\(kind)\">\(text)</p>"
    }
}

/// How a message is shown; each kind has an icon or a text besides its color.
package enum NoticeKind: String, Sendable { case error, success, note }

/// A field of a form that the user fills in.
struct FormField {
    let id: String
    let name: String
    let label: String
    /// `username`, `email`, `name`, `current-password` or `new-password`.
    let autocomplete: String
    var value: String?
    var hint: String?
    var error: String?
    /// The page's message is about this field.
    var isDescribedByNotice = false
    /// The message is about this field, and the user should change it.
    var isInvalid = false

    var type: String {
        switch autocomplete {
        case "email": "email"
        case "username", "name": "text"
        default: "password"
        }
    }
}
