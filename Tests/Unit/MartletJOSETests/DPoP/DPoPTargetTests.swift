import Testing

@testable import MartletJOSE

@Suite struct `URLs of DPoP proofs` {
    @Test(arguments: [
        ("https://a.example/x", "https://a.example/x"), ("HTTPS://A.Example/X", "https://a.example/X"),
        ("https://a.example", "https://a.example/"), ("https://a.example?q=1", "https://a.example/"),
        ("https://a.example#f", "https://a.example/"), ("https://a.example/x?q=/y#f", "https://a.example/x"),
        ("https://a.example/x#f?q", "https://a.example/x"),
        ("https://a.example:443/x", "https://a.example/x"), ("http://a.example:80", "http://a.example/"),
        ("https://a.example:/x", "https://a.example/x"), ("https://a.example:00443/", "https://a.example/"),
        ("https://a.example:80/", "https://a.example:80/"), ("http://a.example:443/", "http://a.example:443/"),
        ("https://a.example:8443/", "https://a.example:8443/"),
        ("https://[2001:DB8::1]:443/", "https://[2001:db8::1]/"),
        ("https://[::1]:8443/a", "https://[::1]:8443/a"), ("https://%41.example/", "https://a.example/"),
        ("https://A%c3%a9.example/", "https://a%C3%A9.example/"), ("https://a_b.example/", "https://a_b.example/"),
        ("https://a.example/%7Eu/%41%2d", "https://a.example/~u/A-"),
        ("https://a.example/a%2fb%c3%a9", "https://a.example/a%2Fb%C3%A9"),
        ("https://a.example/a//b/", "https://a.example/a//b/"),
        ("https://a.example/a/./b/../c", "https://a.example/a/c"),
        ("https://a.example/a/%2e%2E/b", "https://a.example/b"), ("https://a.example/..", "https://a.example/"),
        ("https://a.example/a/.", "https://a.example/a/"), ("https://a.example/a/..", "https://a.example/"),
        ("https://a.example/a|b", "https://a.example/a|b"), ("https://a.example/...", "https://a.example/..."),
    ])
    func `are normalized`(text: String, expected: String) throws {
        let target = try #require(DPoPTarget(text))
        #expect(String(decoding: target.bytes, as: UTF8.self) == expected)
        #expect(DPoPTarget(expected) == target)
    }

    @Test(arguments: [
        "", "a.example/x", "/x", "//a.example/x", "https:/a.example", "https:a.example", "https//a.example",
        "ftp://a.example/", "wss://a.example/", "://a.example/", "https://", "https:///x", "https://?q", "https://#",
        "https://user@a.example/", "https://user:pw@a.example/", "https://:443/", "https://a.example:x/",
        "https://a.example:-1/", "https://a.example:+443/", "https://a.example:65536/", "https://a.example:000443/",
        "https://[::1/", "https://[]/", "https://[::1]x/", "https://[::g]/", "https://[fe80::1%25eth0]/",
        "https://a.example/%", "https://a.example/%4", "https://a.example/%4g", "https://%/", "https://a example/",
        "https://a.example/a b", "https://a.example/\u{e9}", "https://\u{e9}.example/", "https://a.example/\u{7F}",
        "https://a.example\\x", "https://a<b.example/", " https://a.example/", "https://a.example/\n",
    ])
    func `are rejected`(text: String) { #expect(DPoPTarget(text) == nil) }

    @Test func `are made of scheme, authority and path`() {
        func target(_ scheme: String, _ authority: String, _ path: String) -> DPoPTarget? {
            DPoPTarget(scheme: Array(scheme.utf8), authority: Array(authority.utf8), path: Array(path.utf8))
        }
        #expect(target("https", "A.example:443", "/x?q=1") == DPoPTarget("https://a.example/x"))
        #expect(target("http", "a.example:8080", "") == DPoPTarget("http://a.example:8080/#f"))
        #expect(target("https", "a.example", "/x") != DPoPTarget("http://a.example/x"))
        #expect(target("https", "a.example", "/x") != DPoPTarget("https://b.example/x"))
        #expect(target("https", "a.example", "/x") != DPoPTarget("https://a.example/X"))
        #expect(target("https", "a.example", "/x") != DPoPTarget("https://a.example/x/"))
        #expect(target("https", "a.example", "*") == nil)
        #expect(target("https", "a.example", "x") == nil)
        #expect(target("https", "a.example/b", "/x") == nil)
        #expect(target("https", "", "/x") == nil)
        #expect(target("", "a.example", "/x") == nil)
    }
}
