import Foundation
import MartletTesting
import Testing

@testable import MartletConfig

/// What works, or seems to, and is hardly meant.
@Suite struct `Advice of the check` {
    private func lines(
        endpoints: String = "[http://a]", upstream: String = "", route: String = "", more: String = "",
        file: String = "gw.yaml"
    ) -> [String] {
        let text = """
            version: 1
            upstreams: { api: { endpoints: \(endpoints)\(upstream) } }
            routes: [{ name: r, auth: none, upstream: api\(route) }]
            \(more)

            """
        return decode(Array(text.utf8), file: file).lines
    }

    private func expectOne(
        _ lines: [String], _ severity: String, _ part: String, at location: Testing.SourceLocation = #_sourceLocation
    ) {
        #expect(lines.count == 1 && lines[0].contains(": \(severity): ") && lines[0].contains(part), "\(lines)")
    }

    @Test func `endpoints that are all backups, or there twice`() {
        #expect(lines() == [])
        expectOne(lines(endpoints: "[{ url: http://a, backup: true }]"), "warning", "all are backups")
        #expect(lines(endpoints: "[http://b, { url: http://a, backup: true }]") == [])
        expectOne(lines(endpoints: "[http://a, http://b, http://a:80]"), "error", "there twice")
        #expect(lines(endpoints: "[http://a, http://a:81, http://b]") == [])
    }

    @Test func `that an anchor brings to several places is given once`() {
        let text = """
            version: 1
            upstreams: { api: { endpoints: [http://a] } }
            routes:
              - { name: a, match: { path: /a }, auth: none, upstream: api, cors: &c { origins: ["https://*.com"] } }
              - { name: b, match: { path: /b }, auth: none, upstream: api, cors: *c }

            """
        expectOne(decode(Array(text.utf8), file: "gw.yaml").lines, "warning", "origins")
    }

    @Test func `attempts that may take as long as all together`() {
        func attempts(_ attempt: String, _ whole: String, _ count: Int = 2) -> [String] {
            lines(
                upstream: ", retries: { attempts: \(count), per_try_timeout: \(attempt) }", route: ", timeout: \(whole)"
            )
        }
        expectOne(attempts("5s", "3s"), "warning", "per_try_timeout (5s) is not shorter than its timeout (3s)")
        #expect(attempts("1s", "3s") == [] && attempts("5s", "3s", 0) == [])
    }

    @Test func `origins below a whole top-level domain`() {
        func cors(_ origin: String) -> [String] { lines(route: ", cors: { origins: [\"\(origin)\"] }") }
        expectOne(cors("https://*.com"), "warning", "every domain below 'com'")
        #expect(cors("https://*.example.com") == [])
    }

    @Test func `connections to a store in memory`() {
        expectOne(lines(more: "store: { url: \"memory:\", pool: 8 }"), "warning", "memory: has no connections")
        #expect(lines(more: "store: { url: \"memory:\" }") == [])
    }

    @Test(arguments: ["10", "100", "0.05"]) func `a sample without a percent sign`(sample: String) {
        expectOne(
            lines(more: "log: { access: { sample: \(sample) } }"), "error", "must have a percent sign: '\(sample)%'")
        expectOne(
            lines(more: "tracing: { otlp: http://127.0.0.1:4318, sample: \(sample) }"), "error", "percent sign")
        #expect(lines(more: "tracing: { otlp: http://127.0.0.1:4318, sample: \(sample)% }") == [])
        #expect(lines(more: "tracing: { otlp: http://127.0.0.1:4318, sample: 0 }") == [])
    }

    @Test func `files that a gateway cannot write`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("gw.yaml")
        expectOne(
            lines(more: "audit: { file: nofolder/audit.log, key: k }", file: file), "error", "its folder does not exist"
        )
        #expect(lines(more: "audit: { file: audit.log, key: k }", file: file) == [])
    }

    @Test(arguments: [
        ("secret", true), ("secret\n", true), ("secret \n", false), ("secret\n\n", false), (" secret", false),
    ])
    func `white space around the secret in a file`(text: String, isGood: Bool) throws {
        let folder = try TemporaryFolder()
        try folder.write(text, to: "password")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder.file("password"))
        let found = lines(
            more: "store: { url: \"rediss://127.0.0.1\", password_file: password }", file: folder.file("gw.yaml"))
        if isGood { #expect(found == []) } else { expectOne(found, "warning", "white space") }
    }

    @Test func `a variable as shells write it`() {
        func password(_ text: String) -> [String] {
            lines(more: "store: { url: \"redis://127.0.0.1\", password: \"\(text)\" }")
        }
        expectOne(password("$REDIS_PASSWORD"), "warning", "${NAME}")
        #expect(password("$ecret") == [] && password("a$B") == [] && password("$") == [])
    }

    @Test func `a file may have 16 MiB, and aliases in proportion`() {
        let anchors = "a: &a { mode: required, providers: [x] }"
        func parsed(_ count: Int) -> Bool {
            let list = (0..<count).map { "- { name: r\($0), path: /some/path/that/is/long/\($0), auth: *a, more: *a }" }
            var diagnostics = Diagnostics()
            let text = "\(anchors)\nroutes:\n\(list.joined(separator: "\n"))\n"
            let node = ConfigurationNode.parse(
                Array(text.utf8), file: "gw.yaml", environment: { _ in nil }, into: &diagnostics)
            return node != nil && !diagnostics.hasErrors
        }
        #expect(parsed(20_000))
        var diagnostics = Diagnostics()
        let large = Array("a: ".utf8) + [UInt8](repeating: 0x62, count: 16 << 20)
        #expect(
            ConfigurationNode.parse(large, file: "gw.yaml", environment: { _ in nil }, into: &diagnostics) == nil)
        #expect(
            diagnostics.sorted.map(\.description) == [
                "gw.yaml:1:1: error: the file is larger than 16MiB [config.too_large]"
            ])
    }
}
