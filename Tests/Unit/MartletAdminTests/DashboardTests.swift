import MartletResponder
import Testing

@testable import MartletAdmin

@Suite struct `Files of the dashboard` {
    private static func text(_ file: DashboardFile) -> String { String(decoding: file.response.body, as: UTF8.self) }

    @Test func `have names, media types and a policy without exceptions`() {
        let files: [(name: String, type: String, start: String)] = [
            ("", "text/html; charset=utf-8", "<!doctype html>"),
            ("dashboard.css", "text/css; charset=utf-8", ":root {"),
            ("dashboard.js", "text/javascript; charset=utf-8", "// The dashboard of the admin listener"),
        ]
        for file in files {
            let response = DashboardFile(rawValue: file.name)?.response
            #expect(response?.fields.first { $0.name == "Content-Type" }?.value == file.type, "\(file.name)")
            #expect(response.map { String(decoding: $0.body, as: UTF8.self).hasPrefix(file.start) } == true)
            let policy = response?.fields.first { $0.name == "Content-Security-Policy" }?.value ?? ""
            #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"))
            #expect(!policy.contains("unsafe") && !policy.contains("http"))
        }
        #expect(DashboardFile(rawValue: "dashboard.html") == nil && DashboardFile(rawValue: "x") == nil)
    }

    @Test func `the page has no script or style of its own, and nothing from elsewhere`() {
        let page = Self.text(.page)
        for part in [
            "<style", " style=", " onclick", " onload", "javascript:", "http://", "https://", "<img", "<iframe",
        ] {
            #expect(!page.contains(part), "\(part)")
        }
        #expect(page.split(separator: "<script").count == 2)
        #expect(!Self.text(.style).contains("url(") && !Self.text(.style).contains("@import"))
    }

    @Test func `the script makes no markup of texts, and stores nothing`() {
        let script = Self.text(.script)
        for part in [
            "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser",
            "localStorage", "sessionStorage", "indexedDB", "document.cookie", "https://",
        ] {
            #expect(!script.contains(part), "\(part)")
        }
    }
}
