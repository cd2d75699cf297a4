import Testing

@testable import MartletPages

private let hostile = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\u{0}\u{1b}"

@Suite struct `Escaping by position` {
    @Test func `text cannot become an element`() {
        let page: HTML = "<p>\(hostile)</p>"
        #expect(!page.text.dropFirst(3).dropLast(4).contains { "<>\"'".contains($0) })
        #expect(
            page.text.hasPrefix("<p>&quot;&#39;&gt;&lt;script&gt;alert(1)")
                && page.text.hasSuffix("&amp;amp;\u{FFFD}\u{FFFD}</p>"))
    }

    @Test func `an attribute cannot be left`() {
        let page: HTML = "<p title=\"\(hostile)\" lang='\(hostile)'>x</p>"
        #expect(page.text.filter { $0 == "\"" }.count == 2 && page.text.filter { $0 == "'" }.count == 2)
        #expect(page.text.filter { $0 == "<" }.count == 2)
    }

    @Test func `the text of a title or text area cannot be left`() {
        let page: HTML = "<title>\(hostile)</title><textarea>\("</textarea>")</textarea>"
        #expect(page.text.filter { $0 == "<" }.count == 4)
    }

    static let dangerous = [
        "javascript:alert(1)", "JavaScript:alert(1)", "java\tscript:alert(1)", " javascript:alert(1)",
        "data:text/html,x",
        "vbscript:x", "//evil.example", "/\\evil.example", "\\\\evil.example", "/a\\b", "http:/evil", "https://",
        "http:///x", "ftp://a", "", "a b", "/a b", "/a\nb", "mailto:a@b", "?lang=en", "relative", hostile,
        "/" + String(repeating: "a", count: 8192),
    ]

    @Test(arguments: dangerous) func `a URL that is not allowed is dropped with its attribute`(url: String) {
        #expect(!PageURL.isAllowed(url))
        let page: HTML = "<a class=\"x\" href=\"\(url)\" lang=\"en\">\("text")</a>"
        #expect(page.text == "<a class=\"x\"  lang=\"en\">text</a>")
        let single: HTML = "<form action='\(url)'>\("text")</form>"
        #expect(single.text == "<form >text</form>")
        let attribute: HTML = "<img\(attribute: "src", url)>"
        #expect(attribute.text == "<img>")
    }

    @Test(arguments: ["/", "/a?b=c&d=%20#e", "https://example.com", "HTTP://example.com:81/ä", "/auth/start/apple"])
    func `paths and URLs of the web stay`(url: String) {
        #expect(PageURL.isAllowed(url))
        let page: HTML = "<a href=\"\(url)\">x</a>"
        #expect(page.text == "<a href=\"\(HTML.escape(url))\">x</a>")
    }

    @Test func `a part of a URL is not replaced`() {
        let page: HTML = "<a href=\"/x?\("y")\">z</a>"
        #expect(page.text == "<a >z</a>")
    }

    @Test func `positions that take no value get none`() {
        let cases: [HTML] = [
            "<script>\("v")</script>", "<style>\("v")</style>", "<!--\("v")-->", "<p \("v")>", "<\("v")>",
            "<p class=\("v")>",
            "<p style=\"\("v")\">", "<p onclick='\("v")'>", "<iframe srcdoc=\"\("v")\">", "<img srcset=\"\("v")\">",
            "<!doctype \("v")>", "<? \("v")>", "</\("v")>", "<p x=\("v")>", "<noscript>\("v")</noscript>",
        ]
        for page in cases { #expect(!page.text.contains("v") || page.text.contains("iv"), "\(page)") }
        let attributes: HTML = "<p\(attribute: "onclick", "v")\(attribute: "style", "v")>"
        #expect(attributes.text == "<p>")
    }

    @Test func `fragments and attributes are inserted only where they belong`() {
        let bold: HTML = "<b>x</b>"
        let page: HTML = "<p title=\"\(bold)\">\(bold)\(attribute: "class", "x")\(flag: "hidden", true)</p>"
        #expect(page.text == "<p title=\"\"><b>x</b></p>")
        let flags: HTML =
            "<p\(attribute: "class", nil)\(flag: "hidden", true)\(flag: "inert", false)\(attribute: "id", "<")>"
        #expect(flags.text == "<p hidden id=\"&lt;\">")
    }

    @Test func `positions are found again after comments, scripts and odd tags`() {
        for before in [
            "<!-- > <p class=\" -->", "<!-->", "<!--->", "<!-- --!>", "<script>if (a</b/.test('<p>')) {}</script >",
            "<style>p > a { }</style>", "<p a=b c='>' d=\"'>\" e>", "a < b", "<br/>", "<!DOCTYPE html>", "<?xml ?>",
            "<title>a <b></title>", "</ x>", "</>", "<p =a>", "<SCRIPT></sCript\n>", "<<b>",
        ] {
            var scanner = MarkupScanner()
            for byte in before.utf8 { scanner.read(byte) }
            #expect(scanner.context == .text, "\(before)")
        }
    }

    @Test func `queries are encoded`() {
        #expect(
            PageURL.local("/a", [("lang", nil), ("return_to", "/b?c=d&e ä")]) == "/a?return_to=/b%3Fc%3Dd%26e%20%C3%A4")
        #expect(PageURL.local("/a?b=c", [("d", "\"<")]) == "/a?b=c&d=%22%3C")
    }
}

@Suite struct `Fields of a page` {
    @Test func `allow nothing but the style and forms`() throws {
        let nonce = try #require(PageNonce("abc"))
        let fields = PageFields.fields(
            nonce: nonce,
            formOrigins: [
                "https://appleid.apple.com", "http://127.0.0.1:81", "https://a; script-src *", "x", "https://",
            ])
        #expect(
            fields.map { "\($0.name): \($0.value)" } == [
                "Content-Type: text/html; charset=utf-8", "Cache-Control: no-store",
                "Content-Security-Policy: default-src 'none'; style-src 'nonce-abc'; img-src 'self'; "
                    + "form-action 'self' https://appleid.apple.com http://127.0.0.1:81; frame-ancestors 'none'; base-uri 'none'",
                "Referrer-Policy: same-origin", "X-Content-Type-Options: nosniff",
            ])
    }

    @Test func `leave out where forms lead to if that is not known`() throws {
        let nonce = try #require(PageNonce("abc"))
        #expect(
            PageFields.fields(nonce: nonce, formOrigins: nil)[2].value
                == "default-src 'none'; style-src 'nonce-abc'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'")
    }

    @Test func `nonces are random and never more than one value`() {
        #expect(PageNonce().text.utf8.count == 22 && PageNonce() != PageNonce())
        for text in ["", "a b", "a'", "a;", "\"", "a\n", "a,b"] { #expect(PageNonce(text) == nil, "\(text)") }
    }
}
