/// The fields of responses with pages.
package enum PageFields {
    /// - Parameters:
    ///   - nonce: of the page's style element.
    ///   - formOrigins: origins besides this one that its forms, and the redirects after them, lead to; what is not an
    ///     origin is left out. `nil` where they are not known: browsers apply `form-action` to every redirect after a
    ///     form, and would stay on the page.
    package static func fields(nonce: PageNonce, formOrigins: [String]?) -> [(name: String, value: String)] {
        let origins = formOrigins.map { (["'self'"] + $0.filter(PageURL.isOrigin)).joined(separator: " ") }
        let policy =
            "default-src 'none'; style-src 'nonce-\(nonce.text)'; img-src 'self'; "
            + (origins.map { "form-action \($0); " } ?? "") + "frame-ancestors 'none'; base-uri 'none'"
        return [
            ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"),
            ("Content-Security-Policy", policy), ("Referrer-Policy", "same-origin"),
            ("X-Content-Type-Options", "nosniff"),
        ]
    }
}
