import MartletConfig
import MartletCore
import MartletTesting
import Testing

@Suite struct `The configuration of the audit log` {
    private func read(
        _ audit: String, in folder: String = "/etc/martlet"
    ) -> (audit: AuditConfiguration?, lines: [String]) {
        let decoded = decode(Array((minimalFile + "audit: \(audit)\n").utf8), file: "\(folder)/config.yaml")
        return (decoded.configuration?.audit, decoded.lines)
    }

    @Test func `has destinations and a key`() throws {
        let folder = try TemporaryFolder()
        let all = read(
            "{ file: audit.log, syslog: \"udp://logs.example.com\", webhook: { url: \"https://a.example/x\", timeout: 1s, secret: s }, key: k }",
            in: folder.path)
        #expect(all.lines == [])
        #expect(all.audit?.file?.value.text == "\(folder.path)/audit.log")
        #expect(all.audit?.syslog?.value == .udp(host: "logs.example.com", port: 514))
        let webhook = all.audit?.webhook
        #expect(webhook?.url.value.text == "https://a.example/x" && webhook?.timeout == .seconds(1))
        #expect(webhook?.secret != nil && all.audit?.key != nil)
        let short = read("{ syslog: \"unix:/dev/log\", webhook: \"http://127.0.0.1:9/\", key: k }")
        #expect(short.lines == [] && short.audit?.syslog?.value == .unix(path: "/dev/log"))
        #expect(short.audit?.webhook?.url.value.port == 9 && short.audit?.webhook?.timeout == .seconds(5))
        #expect(read("{ syslog: \"udp://[::1]:5140\", key: k }").audit?.syslog?.value == .udp(host: "::1", port: 5140))
    }

    @Test(arguments: [
        ("{ key: k }", "audit: needs 'file', 'syslog' or 'webhook'", "config.missing_key"),
        ("{ file: a }", "missing key 'key' or 'key_file'", "config.missing_key"),
        ("{ file: a, key: k, key_file: b }", "'key_file' and 'key' are both given", "config.conflicting_keys"),
        ("{ file: a, key: k, files: b }", "unknown key 'files'", "config.unknown_key"),
        ("{ syslog: \"tcp://host\", key: k }", "'tcp://host' is not an address such as", "config.bad_address"),
        ("{ syslog: \"unix:\", key: k }", "is not an address", "config.bad_address"),
        ("{ syslog: \"udp://host:0\", key: k }", "is not an address", "config.bad_address"),
        ("{ webhook: \"http://a.example/\", key: k }", "must be https, or http", "config.bad_url"),
        ("{ webhook: { url: \"http://a.example/\" }, key: k }", "must be https, or http of a", "config.bad_url"),
        ("{ webhook: { timeout: 1s }, key: k }", "missing key 'url'", "config.missing_key"),
        ("{ webhook: { url: \"https://a.example/\", timeout: 1h }, key: k }", "timeout", "config.bad_duration"),
    ])
    func `has errors with positions`(audit: String, text: String, code: String) {
        let lines = read(audit).lines
        #expect(
            lines.contains { $0.contains(text) && $0.hasSuffix("[\(code)]") && $0.contains("config.yaml:4:") },
            "\(lines)")
    }
}
