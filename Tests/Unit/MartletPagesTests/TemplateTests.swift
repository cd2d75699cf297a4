import MartletCore
import Testing

@testable import MartletPages

private func parse(_ text: String, _ name: PageTemplate.Name = .signIn) throws(TemplateError) -> PageTemplate {
    try PageTemplate(Array(text.utf8), for: name, file: "t.html")
}

private func render(_ text: String, _ page: any Page = PageFixture.signIn(), returnTo: String? = "/a") throws -> String
{
    let template = try parse(text, try #require(page.template))
    let context = PageCase(name: "", page: page, returnTo: returnTo).context(.english)
    let values = context.values(page.title(in: context)).merging(page.values(in: context).values) { $1 }
    return template.render(values, context.words).text
}

@Suite struct `Templates of pages` {
    @Test func `show values, lists, sentences and what is absent`() throws {
        #expect(
            try render("<h1>{{ heading }}</h1>{{! no }}{{#providers}}<a href=\"{{url}}\">{{label}}</a>{{/providers}}")
                == "<h1>Sign in to Example</h1><a href=\"/auth/start/apple?return_to=/orders%3Fpage%3D2\">Sign in with Apple</a>"
                + "<a href=\"/auth/start/wechat?return_to=/orders%3Fpage%3D2\">Continue with WeChat</a>")
        #expect(try render("{{#notice}}x{{/notice}}{{^notice}}none{{/notice}}{{word.username}}") == "noneUsername")
        #expect(
            try render("{{#logo}}<img src='{{logo}}' alt=''>{{/logo}}{{^logo}}x{{/logo}}")
                == "<img src='/auth/logo' alt=''>")
        #expect(
            try render(
                "{{#password}}{{#invalid}}bad{{/invalid}}{{site}}{{/password}}", PageFixture.signIn(.wrongPassword))
                == "badExample")
    }

    @Test func `escape values, and drop URLs that are not allowed`() throws {
        let nasty = "\"'><script>"
        #expect(
            try render("<p title=\"{{return_to}}\">{{return_to}}</p>", returnTo: nasty)
                == "<p title=\"&quot;&#39;&gt;&lt;script&gt;\">&quot;&#39;&gt;&lt;script&gt;</p>")
        let page = PageFixture.signIn(providers: [
            .init(name: "x", kind: .other(label: nasty), url: "javascript:alert(1)")
        ])
        #expect(
            try render("{{#providers}}<a id=\"x\" href=\"{{url}}\" lang=\"en\">x</a>{{/providers}}", page)
                == "<a id=\"x\"  lang=\"en\">x</a>")
    }

    @Test(
        arguments: [
            ("{{", "pages.template_syntax", 1, 1), ("a\nbä{{heading", "pages.template_syntax", 2, 3),
            ("{{}}", "pages.template_syntax", 1, 1), ("{{a-b}}", "pages.template_syntax", 1, 1),
            ("{{providers}}", "pages.template_syntax", 1, 1), ("{{#providers}}", "pages.template_syntax", 1, 1),
            ("{{/providers}}", "pages.template_syntax", 1, 1),
            ("{{#links}}{{/providers}}", "pages.template_syntax", 1, 11),
            ("{{#links}}{{#links}}{{/links}}{{/links}}", "pages.template_syntax", 1, 11),
            ("<p", "pages.template_syntax", 1, 3),
            (String(repeating: "{{#site}}", count: 9), "pages.template_syntax", 1, 73),
            ("{{nothing}}", "pages.template_unknown_name", 1, 1), ("{{url}}", "pages.template_unknown_name", 1, 1),
            ("{{word.nothing}}", "pages.template_unknown_name", 1, 1),
            ("{{word.signInTitle}}", "pages.template_unknown_name", 1, 1),
            ("<style>{{site}}</style>", "pages.template_position", 1, 8),
            ("<!-- {{site}} -->", "pages.template_position", 1, 6),
            ("<p class={{site}}>", "pages.template_position", 1, 10), ("<p {{site}}>", "pages.template_position", 1, 4),
            ("<p style=\"{{site}}\">", "pages.template_position", 1, 11),
            ("<p onclick=\"{{site}}\">", "pages.template_position", 1, 13),
            ("<a href=\"{{site}}\">", "pages.template_position", 1, 10),
            ("<a href=\"{{logo}}?x\">", "pages.template_position", 1, 10),
            ("<a href=\"/x{{logo}}\">", "pages.template_position", 1, 12),
            ("<p class=\"{{#logo}}x{{/logo}}\">", "pages.template_position", 1, 11),
            ("{{#logo}}<p {{/logo}}", "pages.template_position", 1, 13), ("<script>", "pages.template_script", 1, 8),
            ("<svg><SCRIPT src='/x'>", "pages.template_script", 1, 13),
            (
                "{{#password}}<form method=post action=\"{{action}}\"></form>{{/password}}",
                "pages.template_incomplete", 1, 19
            ),
            ("<form>", "pages.template_incomplete", 1, 6),
            ("{{#password}}<form><input value=\"{{csrf}}\"></form>{{/password}}", "pages.template_incomplete", 1, 19),
            ("<form method=\"get\">", "pages.template_incomplete", 1, 6),
            ("<form data-method=\"post\">", "pages.template_incomplete", 1, 6),
            ("{{#password}}<form method='POST'>{{csrf}}</form>{{/password}}", "pages.template_incomplete", 1, 19),
            ("<meta name=\"x\" content=\"{{site}}\">", "pages.template_position", 1, 25),
        ] as [(String, String, Int, Int)])
    func `are rejected with code and position`(text: String, code: String, line: Int, column: Int) {
        let error = #expect(throws: TemplateError.self) { try parse(text) }
        #expect(
            error?.code.rawValue == code && error?.position == .init(line: line, column: column),
            "\(String(describing: error))")
        #expect(error?.file == "t.html" && error?.message.isEmpty == false)
    }

    @Test func `are bounded, and UTF-8`() throws {
        _ = try parse(String(repeating: "x", count: PageTemplate.maximumBytes))
        let large = #expect(throws: TemplateError.self) {
            try parse(String(repeating: "x", count: PageTemplate.maximumBytes + 1))
        }
        #expect(large?.code == .templateTooLarge)
        let invalid = #expect(throws: TemplateError.self) {
            try PageTemplate([0x61, 0x0A, 0x61, 0xFF], for: .message, file: "t")
        }
        #expect(invalid?.code == .templateSyntax && invalid?.position == .init(line: 2, column: 2))
    }

    @Test func `a folder has all of them, or every error is reported`() {
        let (templates, errors) = PageTemplates.load("/t") { (path, _) throws(PageFileError) in
            if path.hasSuffix("account.html") { throw PageFileError("gone", isTooLarge: false) }
            if path.hasSuffix("message.html") { throw PageFileError("much", isTooLarge: true) }
            return Array("{{x}}".utf8)
        }
        #expect(templates == nil && errors.count == 5)
        #expect(errors.filter { $0.position == .init(line: 1, column: 1) }.count == 3)
        for (name, code, text) in [
            ("account", ErrorCode.templateUnreadable, "gone"), ("message", .templateTooLarge, "much"),
        ] {
            let error = TemplateError(code: code, message: text, file: "/t/\(name).html", position: nil)
            #expect(errors.contains(error))
        }
        #expect(PageTemplates.paths(in: "/t/") == PageTemplates.paths(in: "/t"))
        #expect(PageTemplates.paths(in: "t").first == "t/sign-in.html")
    }

    @Test(arguments: PageFixture.cases) func `replace the page, with its policy`(one: PageCase) throws {
        let (templates, errors) = PageTemplates.load("/t") { _, _ in
            Array("<p>{{heading}}</p><style nonce=\"{{nonce}}\"></style>".utf8)
        }
        #expect(errors == [])
        var one = one
        one.site = PageSite(title: "Own", templates: templates)
        guard one.page.template != nil else {
            #expect(one.text().contains("<form"), "a page without a template is ours")
            return
        }
        let page = one.page.render(in: one.context(.english))
        let heading = HTML.escape(one.page.title(in: one.context(.english)))
        #expect(
            String(decoding: page.bytes, as: UTF8.self)
                == "<p>\(heading)</p><style nonce=\"\(page.nonce.text)\"></style>")
    }

    @Test(arguments: PageFixture.cases) func `every value is one of the schema`(one: PageCase) {
        func check(_ values: [String: TemplateValue], _ schema: TemplateSchema) {
            for (name, value) in values {
                switch (value, schema.names[name]) {
                case (.text, .text), (.text, .url): break
                case (.list(let list), .list(let inner)): for element in list { check(element, inner) }
                default: Issue.record("\(one.name): \(name)")
                }
            }
        }
        guard let template = one.page.template else { return }
        let context = one.context(.english)
        let values = context.values("").merging(one.page.values(in: context).values) { $1 }
        check(values, TemplateSchema.schema(of: template))
        #expect(Set(values.keys) == Set(TemplateSchema.schema(of: template).names.keys))
    }
}
