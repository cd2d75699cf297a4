import MartletBrowser
import MartletHTTP
import Testing

@Suite struct `A navigation` {
    @Test(
        arguments: [
            (["Sec-Fetch-Mode: navigate"], true), (["sec-fetch-mode: navigate", "Accept: */*"], true),
            (["Sec-Fetch-Mode: cors", "Accept: text/html"], false), (["Sec-Fetch-Mode: websocket"], false),
            (["Sec-Fetch-Mode: Navigate"], false), (["Sec-Fetch-Mode:", "Accept: text/html"], false),
            (["Sec-Fetch-Mode: navigate", "Sec-Fetch-Mode: navigate"], false), ([], false),
            (["Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], true),
            (["Accept: text/html"], true), (["Accept: TEXT/HTML"], true), (["Accept: application/xhtml+xml"], true),
            (["Accept: */*"], false), (["Accept:"], false), (["Accept: text/*"], false),
            (["Accept: application/json, text/plain, */*"], false), (["Accept: application/json"], false),
            (["Accept: application/json, text/html"], false), (["Accept: text/html, application/json"], true),
            (["Accept: application/json;q=0.9, text/html"], true),
            (["Accept: text/html;q=0.8, application/json"], false),
            (["Accept: text/html;q=0"], false), (["Accept: text/html;q=0.0, */*;q=0.1"], false),
            (["Accept: application/json;q=0.1, text/html;level=1;q=0.5"], true), (["Accept: */*, text/html"], false),
            (["Accept: */*;q=0.1", "Accept: text/html;q=0.2"], true), (["Accept: text/html;q=x"], false),
            (["Accept: text/html;q=1.5, a/b;q=0.1"], false), (["Accept: text/html;Q=0.5 , a/b; q=0.6"], false),
            (["Accept: text/htmlx"], false), (["Accept: ,, text/html ,,"], true),
            (["Accept: a/b;q=0.1234, text/html"], true),
        ] as [([String], Bool)])
    func `loads a page`(_ lines: [String], _ expected: Bool) {
        #expect(withFields(lines) { NavigationRule.isNavigation($0, $1, method: $2) } == expected)
        #expect(NavigationRule.isNavigation(method: "GET", fields: fields(lines)) == expected)
        for method in ["HEAD", "POST", "OPTIONS"] {
            #expect(withFields(lines, method: method) { NavigationRule.isNavigation($0, $1, method: $2) } == false)
            #expect(!NavigationRule.isNavigation(method: method, fields: fields(lines)))
        }
    }

    @Test func `is a form, too, where it is one of the gateway`() {
        let navigation = fields(["Sec-Fetch-Mode: navigate"])
        #expect(NavigationRule.isNavigation(method: "POST", fields: navigation, isForm: true))
        #expect(!NavigationRule.isNavigation(method: "POST", fields: fields(["Accept: */*"]), isForm: true))
        #expect(!NavigationRule.isNavigation(method: "PUT", fields: navigation, isForm: true))
    }
}
