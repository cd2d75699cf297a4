/// The page that follows a sign-in at another site where a redirect would lose the session's cookie: browsers send a
/// `SameSite=Strict` cookie with the navigation that this page begins.
package struct ContinuePage: Page {
    /// Where the user goes: a path of this origin, or a URL.
    package var location: String

    package init(to location: String) { self.location = location }

    package var template: PageTemplate.Name? { .message }

    /// The heading.
    package func title(in context: PageContext) -> String { context.words(.continueTitle) }

    /// The elements inside `main`.
    package func content(in context: PageContext) -> HTML {
        """
        \(PageComponents(context).heading(title(in: context)))
        <p class="lead">\(context.words(.continueText, ["site": context.site.title]))</p>
        <p><a class="button primary" href="\(location)">\(context.words(.continueLink))</a></p>
        """
    }

    /// The values of its template, which the browser leaves by itself.
    package func values(in context: PageContext) -> TemplateValues {
        TemplateValues([
            "text": TemplateValue(context.words(.continueText, ["site": context.site.title])),
            "request_id": TemplateValue(String?.none), "sign_in": TemplateValue(String?.none),
        ])
    }
}
