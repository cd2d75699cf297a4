import MartletConfig
import Testing

private let environment = [
    "HOST": "db.example", "EMPTY": "", "PORT": "8080", "ON": "true", "TRICK": "a: b\n- c", "AGAIN": "${HOST}",
    "NULL": "null",
]

/// The expanded text of `x: <scalar>`.
private func expanded(_ scalar: String) -> (String?, [String]) {
    let (node, diagnostics) = parse("x: \(scalar)", environment: environment)
    guard case .scalar(let value)? = node?["x"]?.content else { return (nil, diagnostics.sorted.map(\.description)) }
    return (value.text, diagnostics.sorted.map(\.description))
}

@Suite struct `Variables` {
    @Test(arguments: [
        ("${HOST}", "db.example"), ("redis://${HOST}:${PORT}/0", "redis://db.example:8080/0"),
        ("'${HOST}'", "db.example"),
        ("\"${HOST}\"", "db.example"), ("${NONE:-fallback}", "fallback"), ("${NONE:-}", ""), ("${EMPTY}", ""),
        ("${EMPTY:-fallback}", "fallback"), ("${HOST:-fallback}", "db.example"), ("$${HOST}", "${HOST}"),
        ("$$${HOST}", "$${HOST}"), ("$HOST", "$HOST"), ("a$b", "a$b"), ("${AGAIN}", "${HOST}"),
        ("${TRICK}", "a: b\n- c"),
        ("${NONE:-${HOST}}", "${HOST}"),
    ])
    func `are expanded in scalars`(_ scalar: String, _ expected: String) {
        let (text, lines) = expanded(scalar)
        #expect(text == expected)
        #expect(lines.isEmpty)
    }

    @Test(arguments: [
        BadCase(
            "unset", "x: ${NONE}",
            "1:4: error: environment variable 'NONE' is not set and has no default [config.unset_variable]"),
        BadCase(
            "unset, further on", "x: caf\u{E9} ${NONE}",
            "1:9: error: environment variable 'NONE' is not set and has no default [config.unset_variable]"),
        BadCase(
            "unset, in a scalar of two lines", "x: a\n  ${NONE}",
            "1:4: error: environment variable 'NONE' is not set and has no default [config.unset_variable]"),
        BadCase(
            "unclosed", "x: a${HOST",
            "1:5: error: '${' has no closing '}' (write '$${' for a literal '${') [config.bad_variable]"),
        BadCase(
            "no name", "x: ${}",
            "1:4: error: '${}' is neither ${NAME} nor ${NAME:-default} (write '$${' for a literal '${') [config.bad_variable]"
        ),
        BadCase(
            "a digit first", "x: ${1A}",
            "1:4: error: '${1A}' is neither ${NAME} nor ${NAME:-default} (write '$${' for a literal '${') [config.bad_variable]"
        ),
        BadCase(
            "another operator", "x: ${A-b}",
            "1:4: error: '${A-b}' is neither ${NAME} nor ${NAME:-default} (write '$${' for a literal '${') [config.bad_variable]"
        ),
        BadCase(
            "in braces without quotes", "x: { a: ${A} }",
            "1:10: error: '${' inside { } or [ ] must be quoted [config.yaml_syntax]"),
    ])
    func `are rejected if invalid`(_ bad: BadCase) {
        let (_, diagnostics) = parse(bad.text)
        #expect(diagnostics.sorted.map(\.description) == bad.expected)
    }

    @Test func `never change the structure or the keys`() {
        let (node, diagnostics) = parse("${HOST}: [\"${TRICK}\"]", environment: environment)
        #expect(diagnostics.isEmpty)
        #expect(node?.entries?.map(\.key.value) == ["${HOST}"])
        #expect(node?["${HOST}"]?.elements?.count == 1)
    }

    @Test func `may be numbers, booleans and null`() {
        let text = """
            version: 1
            server: { workers: "${WORKERS}", limits: { connections: "${COUNT}" } }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes:
              - name: all
                auth: none
                forward_credentials: ${ON}
                upstream: ${UPSTREAM:-echo}
            """
        let (configuration, diagnostics) = load(text, environment: ["WORKERS": "4", "COUNT": "9", "ON": "true"])
        #expect(diagnostics.description == "")
        #expect(configuration?.server.workers == 4 && configuration?.server.limits.connections == 9)
        #expect(configuration?.routes[0].forwardsCredentials == true)
        #expect(parse("x: ${NULL}", environment: environment).node?["x"]?.isNull == true)
        #expect(parse("x: '${NULL}'", environment: environment).node?["x"]?.isNull == false)
    }

    @Test func `have a size limit`() {
        let (node, diagnostics) = parse("x: ${A}${A}", environment: ["A": String(repeating: "x", count: 600_000)])
        #expect(node == nil)
        #expect(diagnostics.all.map(\.code) == [.configTooLarge])
    }
}
