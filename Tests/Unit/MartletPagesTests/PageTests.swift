import Foundation
import MartletCore
import Testing

@testable import MartletPages

@Suite struct `Pages` {
    @Test(arguments: PageLanguage.allCases)
    func `a prepared message is the page, but for what differs`(_ language: PageLanguage) throws {
        let site = PageSite(title: "A <b>")
        let prepared = PreparedMessage(.throttled(seconds: 1), of: site, in: language, signIn: "/auth/sign-in")
        let page = prepared.render(requestID: "r<1", seconds: 90)
        let context = PageContext(site: site, choice: LanguageChoice(language), nonce: page.nonce)
        let whole = MessagePage(.throttled(seconds: 90), requestID: "r<1", signIn: "/auth/sign-in").render(in: context)
        #expect(String(decoding: page.bytes, as: UTF8.self) == String(decoding: whole.bytes, as: UTF8.self))
        #expect(page.fields.map(\.value) == whole.fields.map(\.value))
        #expect(prepared.render(requestID: "r<1", seconds: 90).nonce != page.nonce)
    }

    @Test(arguments: PageFixture.cases) func `are well formed and accessible in every language`(one: PageCase) {
        for language in PageLanguage.allCases {
            let checker = PageChecker(one.text(language))
            #expect(checker.errors == [], "\(language)")
            #expect(checker.all("html").first?["lang"] == language.rawValue)
        }
    }

    @Test(arguments: PageFixture.cases) func `have the nonce of their policy`(one: PageCase) {
        let page = one.page.render(in: one.context(.english))
        let text = String(decoding: page.bytes, as: UTF8.self)
        let policy = page.fields.first { $0.name == "Content-Security-Policy" }?.value
        #expect(
            policy?.contains("style-src 'nonce-\(page.nonce.text)'") == true
                && text.contains("nonce=\"\(page.nonce.text)\""))
        #expect(
            !text.contains("{") || text.components(separatedBy: "</style>").last?.contains("{") == false,
            "a value is missing")
    }

    @Test(arguments: [
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onfocus='alert(1)", "</title></style><b>",
        "javascript:alert(1)", "{{x}} {site}\u{202E}\u{0}",
    ])
    func `no name gets out of its position`(nasty: String) {
        let site = PageSite(title: nasty, logo: nasty, links: [PageLink(texts: [.english: nasty], url: nasty)])
        let kind = ProviderButton.Kind.other(label: nasty)
        var account = PageFixture.account(name: nasty, label: nasty, notice: .linked(kind))
        account.requestID = nasty
        account.csrf = nasty
        let pages: [any Page] = [
            SignInPage(
                providers: [.init(name: nasty, kind: kind, url: nasty)],
                password: .init(action: "/auth/sign-in", csrf: nasty, username: nasty), notice: .cancelled(kind),
                requestID: nasty,
                registration: "/auth/register"),
            RegisterPage(
                action: "/auth/register", csrf: nasty, minimumLength: 8, signIn: "/auth/sign-in", username: nasty,
                requestID: nasty),
            MessagePage(.crossSite, requestID: nasty, signIn: "/auth/sign-in"), account,
        ]
        for page in pages {
            let text = PageCase(name: "", page: page, site: site, returnTo: nasty).text()
            var checker = PageChecker(text)
            // The provider's link lost its target, which is what is wanted.
            #expect(checker.errors.filter { $0 != "a link without a target" } == [])
            #expect(checker.all("b").isEmpty && checker.all("img").isEmpty)
            checker = PageChecker(text)
            for element in checker.elements { #expect(element["href"]?.hasPrefix("javascript") != true) }
        }
    }

    @Test func `a wrong password is said in the page and at the field`() throws {
        let checker = PageChecker(PageCase(name: "", page: PageFixture.signIn(.wrongPassword)).text())
        let field = try #require(checker.elements.first { $0["id"] == "password" })
        #expect(field["aria-invalid"] == "true" && field["aria-describedby"] == "notice" && field["autofocus"] == "")
        #expect(field["autocomplete"] == "current-password" && field["type"] == "password" && field["value"] == nil)
        #expect(checker.elements.first { $0["id"] == "notice" }?["role"] == "alert")
    }

    @Test func `the form for passwords has the agreed fields`() {
        let form = SignInPage.PasswordForm(action: "/auth/sign-in", csrf: "t0ken", username: "ada")
        let checker = PageChecker(
            PageCase(name: "", page: PageFixture.signIn(form: form)).text(.simplifiedChinese, isExplicit: true))
        #expect(checker.all("form").first?["action"] == "/auth/sign-in?lang=zh-Hans")
        #expect(
            checker.all("input").map { "\($0["name"] ?? "")=\($0["value"] ?? "")" } == [
                "csrf=t0ken", "return_to=/orders?page=2&amp;sort=date", "username=ada", "password=",
            ])
    }

    @Test func `the wording of Apple's button is Apple's`() {
        let one = PageCase(name: "", page: PageFixture.signIn())
        for (language, text) in [
            (PageLanguage.english, "Sign in with Apple"), (.simplifiedChinese, "通过 Apple 登录"),
            (.traditionalChinese, "透過 Apple 登入"),
        ] {
            #expect(PageChecker(one.text(language)).all("a").first?.text == text)
        }
    }

    @Test func `the language switch keeps the way back`() {
        let checker = PageChecker(PageCase(name: "", page: PageFixture.signIn()).text())
        let links = checker.all("a").filter { $0["hreflang"] != nil }
        #expect(
            links.map { $0["href"] }
                == ["en", "zh-Hans", "zh-Hant"].map {
                    "/auth/sign-in?lang=\($0)&amp;return_to=/orders%3Fpage%3D2%26sort%3Ddate"
                })
        #expect(links.map { $0["aria-current"] } == ["true", nil, nil])
    }

    @Test func `a chosen language is kept by every link`() {
        let checker = PageChecker(
            PageCase(name: "", page: PageFixture.signIn()).text(.traditionalChinese, isExplicit: true))
        for link in checker.all("a") where link["hreflang"] == nil && !link.path.contains("footer") {
            #expect(link["href"]?.contains("lang=zh-Hant") == true)
        }
    }

    @Test func `links at the end have the text of the language, or of the configured one`() {
        let checker = PageChecker(PageCase(name: "", page: PageFixture.signIn()).text(.traditionalChinese))
        #expect(
            checker.all("a").filter { $0.path.contains("footer") && $0["hreflang"] == nil }.map(\.text) == [
                "隱私權", "Terms", "Help",
            ])
    }

    @Test func `errors of a form are at their fields`() throws {
        for (error, id) in [(FormError.usernameTaken, "username"), (.passwordTooWeak, "password")] {
            let checker = PageChecker(PageCase(name: "", page: PageFixture.register(error)).text())
            let field = try #require(checker.elements.first { $0["id"] == id })
            #expect(field["aria-describedby"]?.hasPrefix("\(id)-error") == true && field["aria-invalid"] == "true")
            #expect(checker.elements.contains { $0["id"] == "\(id)-error" && $0.text == error.text(Words(.english)) })
        }
        let page = PageChecker(PageCase(name: "", page: PageFixture.register()).text())
        #expect(page.elements.first { $0["id"] == "password" }?["autocomplete"] == "new-password")
    }

    @Test func `each action of the account is a form of its own`() {
        let checker = PageChecker(PageCase(name: "", page: PageFixture.account()).text())
        #expect(
            checker.all("form").compactMap { $0["action"] } == [
                "/auth/sign-out", "/auth/account/unlink/apple", "/auth/account/unlink/wechat",
                "/auth/account/link/google",
                "/auth/account/sessions/2/end",
                "/auth/account/sessions/3/end", "/auth/sign-out", "/auth/account/password", "/auth/account/delete",
            ])
        #expect(checker.all("button").compactMap { $0["aria-label"] }.contains("Sign out: Ada Lovelace iPhone"))
        #expect(checker.elements.first { $0["id"] == "confirm" }?.attributes.contains { $0.name == "required" } == true)
    }

    /// The pages as files, for `Tests/Pages/screenshots`.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["MARTLET_PAGES_FOLDER"] != nil, "writes files"))
    func `are written to a folder`() throws {
        let folder = try #require(ProcessInfo.processInfo.environment["MARTLET_PAGES_FOLDER"])
        for one in PageFixture.cases {
            for language in PageLanguage.allCases {
                let name = "\(folder)/\(one.name).\(language.rawValue).html"
                try one.text(language).write(toFile: name, atomically: false, encoding: .utf8)
            }
        }
    }
}
