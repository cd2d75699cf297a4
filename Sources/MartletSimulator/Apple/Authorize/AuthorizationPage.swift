internal import MartletResponder

/// The pages of `/auth/authorize`.
enum AuthorizationPage {
    private static let style = """
        body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;padding:0 1rem}\
        label{display:block;margin:.6rem 0}input:not([type]){width:100%;box-sizing:border-box;padding:.4rem}\
        button{font:inherit;padding:.4rem 1rem;margin-right:.5rem}
        """

    /// The page on which the user continues or cancels.
    static func asking(_ request: AuthorizationRequest) -> LocalResponse {
        let hidden = request.parameters.map { hiddenField($0.name, $0.value) }.joined()
        let name =
            request.wantsName
            ? field("First name", PageChoice.firstName, "Ada") + field("Last name", PageChoice.lastName, "Lovelace")
            : ""
        let email =
            request.wantsEmail
            ? field("E-mail", PageChoice.email, "ada@example.com")
                + "<label><input type=\"checkbox\" name=\"\(PageChoice.hidesEmail)\" value=\"on\"> Hide my e-mail</label>"
            : ""
        return page(
            200, "Sign in with the simulated Apple",
            """
            <p>Signing in to <b>\(escaped(request.clientID))</b>.</p><form method="post" action="/auth/authorize">\
            \(hidden)\(field("Apple Account", PageChoice.account, TokenRequest.standardSubject))\(name)\(email)\
            <button name="\(PageChoice.action)" value="continue">Continue</button>\
            <button name="\(PageChoice.action)" value="cancel">Cancel</button></form>
            """)
    }

    /// The page that posts itself to the redirect URI.
    static func posting(_ parameters: [(name: String, value: String)], to redirectURI: String) -> LocalResponse {
        let hidden = parameters.map { hiddenField($0.name, $0.value) }.joined()
        return page(
            200, "Signing in",
            """
            <form method="post" action="\(escaped(redirectURI))">\(hidden)<noscript><button>Continue</button></noscript>\
            </form><script>document.forms[0].submit()</script>
            """)
    }

    /// The page of an error, which the redirect URI does not get.
    static func failing(_ error: AppleAPIError) -> LocalResponse {
        page(
            error.status, escaped(error.code),
            "<p>\(escaped(error.text ?? "The request is invalid."))</p>")
    }

    private static func page(_ status: Int, _ title: String, _ body: String) -> LocalResponse {
        .text(
            status, "text/html; charset=utf-8",
            """
            <!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>\(title)</title>\
            <meta name="viewport" content="width=device-width"><style>\(style)</style></head>\
            <body><h1>\(title)</h1>\(body)</body></html>
            """)
    }

    private static func hiddenField(_ name: String, _ value: String) -> String {
        "<input type=\"hidden\" name=\"\(escaped(name))\" value=\"\(escaped(value))\">"
    }

    private static func field(_ label: String, _ name: String, _ value: String) -> String {
        "<label>\(label)<input name=\"\(name)\" value=\"\(escaped(value))\"></label>"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
    }
}
