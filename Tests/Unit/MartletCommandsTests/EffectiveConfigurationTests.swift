import MartletConfig
import MartletJSON
import Testing

@testable import MartletCommands

@Suite struct `The effective configuration` {
    private static let kind = ConfigurationGrammar([
        .required("audiences", .list(.text, nonEmpty: true), "Whom tokens are for."),
        .optional("leeway", .duration, default: "30s", "The leeway."),
    ]).withSecret("client_secret", required: false, "The secret.")

    private static let base = """
        version: 1
        upstreams: { api: { endpoints: ["http://127.0.0.1:9"] } }
        routes: [{ name: all, match: { path: /** }, auth: none, upstream: api }]

        """

    private func shown(
        _ more: String, _ environment: [String: String] = [:]
    ) throws -> (yaml: String, json: JSONObject, redacted: Int) {
        var diagnostics = Diagnostics()
        let text = Array((Self.base + more).utf8)
        let root = try #require(
            ConfigurationNode.parse(text, file: "t", environment: { environment[$0] }, into: &diagnostics))
        let source = try #require(
            ConfigurationNode.parse(
                text, file: "t", environment: { name in environment[name].map { _ in "${\(name)}" } },
                into: &diagnostics))
        #expect(diagnostics.description == "")
        var effective = EffectiveConfiguration(kinds: ["greeting": Self.kind])
        let members = effective.document(root, source: source)
        return (
            ConfigurationWriter.yaml(members), try #require(ConfigurationWriter.json(members).object),
            effective.redactedCount
        )
    }

    @Test func `has every default, also of blocks that are absent`() throws {
        let (yaml, json, redacted) = try shown("")
        #expect(redacted == 0)
        #expect(yaml.contains("\n  listen:\n    - address: 127.0.0.1:8080\n"), "\(yaml)")
        #expect(yaml.contains("\nlog:\n  level: info\n") && yaml.contains("\nstore:\n  url: \"memory:\"\n"), "\(yaml)")
        #expect(json["server"]?.object?["limits"]?.object?["connections"]?.int64 == 10_000)
        #expect(json["server"]?.object?["overload"] == nil, "it is off if absent")
        #expect(json["routes"]?.array?.first?.object?["name"] == "all")
    }

    @Test func `is a configuration that means the same`() throws {
        let first = try shown("providers: { g: { kind: greeting, audiences: [a, \"7\"] } }\n").yaml
        var diagnostics = Diagnostics()
        let node = try #require(
            ConfigurationNode.parse(Array(first.utf8), file: "t", environment: { _ in nil }, into: &diagnostics))
        var again = EffectiveConfiguration(kinds: ["greeting": Self.kind])
        #expect(ConfigurationWriter.yaml(again.document(node, source: node)) == first)
        let (configuration, problems) = GatewayConfiguration.decode(
            text: Array(first.utf8), file: "t", environment: { _ in nil }, knownKinds: ["greeting"])
        #expect(configuration != nil, "\(problems)")
    }

    static let secrets: [(String, String)] = [
        ("providers: { g: { kind: greeting, audiences: [a], client_secret: hunter2 } }", "client_secret: REDACTED"),
        ("providers: { g: { kind: greeting, audiences: [a], client_secret: \"${PW}\" } }", "client_secret: REDACTED"),
        ("providers: { g: { kind: greeting, audiences: [\"${PW}\"] } }", "audiences: [\"${PW}\"]"),
        ("providers: { g: { kind: greeting, audiences: [\"x-${PW}-${PORT:-7}\"] } }", "[\"x-${PW}-7\"]"),
        ("providers: { g: { kind: other, anything: { at: [hunter2] } } }", "at: [REDACTED]"),
        (
            "store: { url: \"rediss://martlet:hunter2@redis:6379/0\" }",
            "url: \"rediss://martlet:REDACTED@redis:6379/0\""
        ),
        ("store: { url: \"${URL}\" }", "url: \"rediss://REDACTED@redis:1\""),
        ("accounts: { url: \"postgresql://m@db/m?sslmode=verify-full&password=hunter2\" }", "password=REDACTED\""),
        ("log: { subject: hash, subject_key: hunter2-hunter2-hunter2 }", "subject_key: REDACTED"),
        ("instance_id: \"${PW}\"", "instance_id: \"${PW}\""),
    ]

    @Test(arguments: secrets) func `never has a secret`(_ row: (text: String, shown: String)) throws {
        let environment = ["PW": "hunter2", "URL": "rediss://hunter2@redis:1"]
        let (yaml, json, redacted) = try shown(row.text + "\n", environment)
        #expect(yaml.contains(row.shown), "\(yaml)")
        #expect(!yaml.contains("hunter2") && redacted > 0, "\(yaml)")
        #expect(!String(decoding: JSON.write(.object(json)), as: UTF8.self).contains("hunter2"))
    }

    @Test func `has values from the environment that cannot be secrets`() throws {
        let (yaml, _, redacted) = try shown(
            "server: { limits: { connections: \"${N}\" }, timeouts: { drain: \"${D}\" } }\n", ["N": "77", "D": "9s"])
        #expect(yaml.contains("connections: 77") && yaml.contains("drain: 9s") && redacted == 0, "\(yaml)")
    }

    @Test(arguments: [
        ("http://a/b?c=d", "http://a/b?c=d"), ("https://u:p@ss@h:1/x", "https://u:REDACTED@h:1/x"),
        ("https://token@h", "https://REDACTED@h"), ("redis://:a/b@h:1/2", "redis://:REDACTED@h:1/2"),
        ("https://h/x?access_token=1&a=2", "https://h/x?access_token=REDACTED&a=2"),
        ("postgresql://h/d?sslkey=a.pem&passfile=b", "postgresql://h/d?sslkey=a.pem&passfile=b"),
    ]) func `has URLs without their secrets`(url: String, shown: String) {
        #expect(RedactedURL(url, isFromVariable: false)?.text == shown)
    }

    @Test func `hides the path of a web address from the environment`() {
        #expect(
            RedactedURL("https://hooks.example/T1/B2", isFromVariable: true)?.text == "https://hooks.example/REDACTED")
        #expect(RedactedURL("https://a.example/", isFromVariable: true)?.text == "https://a.example/")
        #expect(
            RedactedURL("no url", isFromVariable: false) == nil && RedactedURL("://x", isFromVariable: false) == nil)
    }
}
