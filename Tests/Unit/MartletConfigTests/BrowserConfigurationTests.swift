import MartletConfig
import MartletCore
import Testing

/// Decodes the minimal configuration with sessions and a `browser:` block.
private func browser(_ block: String, sessions: String = "{}") -> (BrowserConfiguration?, [String]) {
    let text = "\(minimalSample)\nsessions: \(sessions)\nbrowser: \(block)\n"
    let (configuration, lines) = decode(Array(text.utf8), file: "etc/gw.yaml")
    return (configuration?.browser, lines)
}

@Suite struct `Browsers` {
    @Test func `have every default`() throws {
        let (decoded, lines) = browser("{ origin: https://App.Example.com:443 }")
        let browser = try #require(decoded, "\(lines)")
        #expect(lines.isEmpty && browser.origin.value == "https://app.example.com" && browser.host == "app.example.com")
        #expect(browser.cookie.name == "__Host-martlet" && browser.cookie.isSecure)
        #expect(browser.cookie.sameSite == .lax && browser.cookie.maximumAge == .seconds(30 * 86_400))
        #expect(browser.returnOrigins.isEmpty && browser.nativeRedirects.isEmpty && !browser.registers)
        #expect(browser.pages.title == nil && browser.pages.logo == nil && browser.pages.accent == nil)
        #expect(browser.pages.links.isEmpty && browser.pages.defaultLanguage == .english)
        #expect(browser.pages.templateFolder == nil)
        #expect(load(minimalSample).configuration?.browser == nil)
    }

    @Test func `have every key`() throws {
        let (decoded, lines) = browser(
            """

              origin: https://app.example.com:8443
              cookie: { name: __Secure-app, same_site: strict, max_age: 0s }
              return_to: [https://WWW.example.org, "http://localhost:3000"]
              native_redirects: [com.example.app:/cb, "com.example.app://cb?x=1", https://app.example.com/cb, "http://127.0.0.1/cb"]
              start: company
              pages:
                title: 示例
                logo_file: logo.svg
                accent: "#0A7"
                links:
                  - { text: { en: Privacy, zh-Hans: 隐私 }, url: /privacy }
                  - { text: { zh-Hant: 條款 }, url: "https://example.com/terms#top" }
                default_language: zh-Hans
                template_dir: /srv/templates
              register: true
            """)
        let browser = try #require(decoded, "\(lines)")
        #expect(lines.count == 1 && lines.first?.contains("without the prefix '__Host-'") == true, "\(lines)")
        #expect(browser.origin.value == "https://app.example.com:8443" && browser.registers)
        #expect(browser.start?.value == "company")
        #expect(browser.location.line == 5 && browser.location.column == 1)
        #expect(browser.cookie.name == "__Secure-app" && browser.cookie.sameSite == .strict)
        #expect(browser.cookie.isSecure && browser.cookie.maximumAge == .zero)
        #expect(browser.returnOrigins == ["https://www.example.org", "http://localhost:3000"])
        #expect(
            browser.nativeRedirects == [
                "com.example.app:/cb", "com.example.app://cb?x=1", "https://app.example.com/cb", "http://127.0.0.1/cb",
            ])
        let pages = browser.pages
        #expect(pages.title == "示例" && pages.logo?.value.text == "etc/logo.svg" && pages.accent == "#00aa77")
        #expect(pages.templateFolder?.value.text == "/srv/templates" && pages.defaultLanguage == .simplifiedChinese)
        #expect(pages.links.map(\.url) == ["/privacy", "https://example.com/terms#top"])
        #expect(pages.links[0].text(in: .simplifiedChinese, else: .english) == "隐私")
        #expect(pages.links[0].text(in: .traditionalChinese, else: .english) == "Privacy")
        #expect(pages.links[1].text(in: .english, else: .simplifiedChinese) == "條款")
    }

    @Test func `need no TLS on loopback, where the cookie's name has no prefix`() {
        for origin in ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"] {
            let (decoded, lines) = browser("{ origin: \"\(origin)\" }")
            #expect(lines.isEmpty && decoded?.origin.value == origin)
            #expect(decoded?.cookie.name == "martlet" && decoded?.cookie.isSecure == false)
        }
        for name in ["__Host-x", "__host-x", "__Secure-x", "__SECURE-x"] {
            let (decoded, lines) = browser("{ origin: \"http://127.0.0.1\", cookie: { name: \(name) } }")
            #expect(decoded == nil && lines.count == 1 && lines[0].contains("[config.bad_value]"))
            #expect(browser("{ origin: https://a.example.com, cookie: { name: \(name) } }").0?.cookie.name == name)
        }
    }

    @Test(arguments: [
        ("[]", true), ("[app.example.com]", true), ("[\"*.example.com\"]", true), ("[example.com]", false),
        ("[\"*.app.example.com\"]", false), ("[api.example.com, app.example.com]", true),
    ])
    func `sign in at a host that has the endpoints`(_ hosts: String, _ isServed: Bool) {
        let (decoded, lines) = browser("{ origin: https://app.example.com:8443 }", sessions: "{ hosts: \(hosts) }")
        #expect((decoded != nil) == isServed && lines.count == (isServed ? 0 : 1))
    }

    @Test func `are handled by routes, which also state whether they take credentials by default`() throws {
        let text = """
            version: 1
            sessions: {}
            providers: { apple: { kind: apple } }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes:
              - { name: a, match: { path: /a }, auth: { browser: never }, upstream: echo }
              - { name: b, match: { path: /b }, auth: { credentials: [session, direct] }, upstream: echo }
              - { name: c, match: { path: /c }, auth: none, upstream: echo }
              - { name: d, upstream: echo }
            """
        let configuration = try #require(load(text).configuration)
        #expect(configuration.routes.map(\.signsInBrowsers) == [false, true, true, true])
        #expect(configuration.routes.map(\.statesCredentials) == [false, true, false, false])
        #expect(configuration.hasSessionsBlock && load(minimalSample).configuration?.hasSessionsBlock == false)
    }
}
