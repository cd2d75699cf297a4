import MartletCore
import MartletHTTP
import Testing

@testable import MartletBrowser

private enum Outcome: String { case yes, no, bad }

/// The decision about every request with a cookie. Columns: what `Origin` states. `yes` is accepted, `no` is 403
/// `cross_site`, `bad` is 400.
private let table: [(kind: String, site: CrossSiteRule.Site, outcomes: [Outcome])] = [
    //  method            Sec-Fetch-Site  absent accepted other repeated
    ("GET HEAD OPTIONS", .absent, [.yes, .yes, .yes, .bad]),
    ("GET HEAD OPTIONS", .sameOrigin, [.yes, .yes, .yes, .bad]),
    ("GET HEAD OPTIONS", .none, [.yes, .yes, .yes, .bad]),
    ("GET HEAD OPTIONS", .other, [.yes, .yes, .yes, .bad]),
    ("GET HEAD OPTIONS", .repeated, [.bad, .bad, .bad, .bad]),
    ("others", .absent, [.no, .yes, .no, .bad]),
    ("others", .sameOrigin, [.yes, .yes, .yes, .bad]),
    ("others", .none, [.yes, .yes, .yes, .bad]),
    ("others", .other, [.no, .yes, .no, .bad]),
    ("others", .repeated, [.bad, .bad, .bad, .bad]),
    ("WebSocket", .absent, [.no, .yes, .no, .bad]),
    ("WebSocket", .sameOrigin, [.no, .yes, .no, .bad]),
    ("WebSocket", .none, [.no, .yes, .no, .bad]),
    ("WebSocket", .other, [.no, .yes, .no, .bad]),
    ("WebSocket", .repeated, [.bad, .bad, .bad, .bad]),
]

@Suite struct `The cross-site rule` {
    @Test func `decides about every combination`() {
        #expect(table.count == 3 * CrossSiteRule.Site.allCases.count)
        for (kind, site, outcomes) in table {
            for (source, outcome) in zip(CrossSiteRule.Source.allCases, outcomes) {
                for isSafe in kind == "WebSocket" ? [true, false] : [kind != "others"] {
                    let error = CrossSiteRule.rejection(
                        hasCookie: true, isSafe: isSafe, isWebSocket: kind == "WebSocket", site: site, source: source)
                    let code = error?.code.rawValue ?? ""
                    let expected = [Outcome.yes: "", .no: "cross_site", .bad: "browser.origin_repeated"][outcome]
                    #expect(code == expected, "\(kind) \(site) \(source)")
                    // Without a cookie nothing can be misused.
                    #expect(
                        CrossSiteRule.rejection(
                            hasCookie: false, isSafe: isSafe, isWebSocket: kind == "WebSocket", site: site,
                            source: source) == nil)
                }
            }
        }
    }

    @Test(
        arguments: [
            ("POST", [], ""), ("POST", ["Sec-Fetch-Site: cross-site"], "cross_site"),
            ("POST", ["Sec-Fetch-Site: same-origin", "Origin: https://app.example.com"], ""),
            ("POST", ["Origin: https://app.example.com"], ""),
            ("POST", ["Origin: http://app.example.com"], "cross_site"),
            ("POST", ["Origin: https://evil.example"], "cross_site"), ("POST", ["Origin: null"], "cross_site"),
            ("POST", ["Origin: https://app.example.com.evil.example"], "cross_site"),
            ("GET", ["Sec-Fetch-Site: cross-site"], ""), ("GET", ["Origin: https://evil.example"], ""),
            ("POST", ["Origin: https://evil.example", "Origin: https://app.example.com"], "browser.origin_repeated"),
        ])
    func `applies to certificates that a browser sends, not to programs`(
        method: String, lines: [String], code: String
    ) {
        for isWebSocket in [false, true] {
            let found = withFields(lines, method: method) { bytes, fields, method in
                do throws(BrowserError) {
                    try CrossSiteRule.checkCertificate(
                        bytes, fields, method: method, isWebSocket: isWebSocket, authority: "app.example.com")
                    return ""
                } catch {
                    return error.code.rawValue
                }
            }
            let isFromOther = lines.contains { $0.contains("evil") || $0.contains("cross-site") }
            let expected = isWebSocket && isFromOther && code.isEmpty ? "cross_site" : code
            #expect(found == expected, "\(method) \(lines) \(isWebSocket)")
        }
    }

    @Test func `a certificate may be used by pages of an origin that the route names`() {
        for (origins, code) in [([], "cross_site"), (["https://web.example.com"], "")] {
            let found = withFields(["Origin: https://web.example.com"], method: "POST") { bytes, fields, method in
                do throws(BrowserError) {
                    try CrossSiteRule.checkCertificate(
                        bytes, fields, method: method, isWebSocket: false, authority: "app.example.com",
                        origins: origins)
                    return ""
                } catch {
                    return error.code.rawValue
                }
            }
            #expect(found == code, "\(origins)")
        }
    }

    private static let rule = CrossSiteRule(origin: "https://app.example.com")

    @Test(
        arguments: [
            ("POST", ["Sec-Fetch-Site: same-origin"], ""), ("POST", ["Sec-Fetch-Site: none"], ""),
            ("DELETE", ["sec-fetch-site: same-origin"], ""), ("POST", ["Sec-Fetch-Site: same-site"], "cross_site"),
            ("POST", ["Sec-Fetch-Site: cross-site"], "cross_site"),
            ("POST", ["Sec-Fetch-Site: Same-Origin"], "cross_site"),
            ("POST", ["Sec-Fetch-Site: same-origin, same-origin"], "cross_site"),
            ("POST", ["Sec-Fetch-Site:"], "cross_site"),
            ("POST", [], "cross_site"), ("PURGE", [], "cross_site"), ("TRACE", [], "cross_site"),
            ("get", [], "cross_site"),
            ("GET", [], ""), ("HEAD", [], ""), ("OPTIONS", [], ""), ("GET", ["Sec-Fetch-Site: cross-site"], ""),
            ("POST", ["Origin: https://app.example.com"], ""), ("POST", ["ORIGIN: https://app.example.com"], ""),
            ("POST", ["Origin: https://App.example.com"], "cross_site"), ("POST", ["Origin: null"], "cross_site"),
            ("POST", ["Origin: https://app.example.com:443"], "cross_site"),
            ("POST", ["Origin: http://app.example.com"], "cross_site"),
            ("POST", ["Origin: https://app.example.com.evil.example"], "cross_site"),
            ("POST", ["Origin: https://app.example.com https://evil.example"], "cross_site"),
            ("POST", ["Origin: null", "Sec-Fetch-Site: same-origin"], ""),
            ("POST", ["Origin: https://app.example.com", "Sec-Fetch-Site: cross-site"], ""),
            ("POST", ["Origin: https://web.example.com", "Sec-Fetch-Site: same-site"], ""),
            ("POST", ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site"], "cross_site"),
            ("GET", ["Origin: a", "Origin: a"], "browser.origin_repeated"),
            (
                "POST", ["Origin: https://app.example.com", "origin: https://app.example.com"],
                "browser.origin_repeated"
            ),
            ("GET", ["Sec-Fetch-Site: none", "Sec-Fetch-Site: none"], "browser.origin_repeated"),
            ("POST", ["X-Origin: https://app.example.com", "Sec_Fetch_Site: none"], "cross_site"),
        ] as [(String, [String], String)])
    func `reads heads, and the fields of handlers alike`(_ method: String, _ lines: [String], _ code: String) {
        let origins = ["https://web.example.com"]
        let fromHead = withFields(lines, method: method == "get" ? "PURGE" : method) { bytes, list, parsed in
            do throws(BrowserError) {
                try Self.rule.check(bytes, list, method: parsed, isWebSocket: false, origins: origins)
                return ""
            } catch {
                return error.code.rawValue
            }
        }
        #expect(fromHead == code)
        do throws(BrowserError) {
            try Self.rule.check(method: method, fields: fields(lines), origins: origins)
            #expect(code == "")
        } catch {
            #expect(error.code.rawValue == code)
        }
    }

    @Test func `needs the origin of a WebSocket`() {
        for (lines, code) in [
            (["Origin: https://app.example.com"], ""), (["Origin: https://web.example.com"], ""),
            (["Sec-Fetch-Site: same-origin"], "cross_site"), (["Origin: https://evil.example"], "cross_site"),
            ([], "cross_site"),
        ] {
            let result = withFields(lines) { bytes, list, method in
                do throws(BrowserError) {
                    try Self.rule.check(
                        bytes, list, method: method, isWebSocket: true, origins: ["https://web.example.com"])
                    return ""
                } catch {
                    return error.code.rawValue
                }
            }
            #expect(result == code, "\(lines)")
        }
    }
}
