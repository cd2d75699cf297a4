internal import MartletConfig

/// What `martlet demo` prints: where everything is, and `curl` lines to paste, each with what to expect.
struct DemoPage {
    /// Tokens of the pretended Apple's.
    struct Tokens {
        let good: String
        let expired: String
        let forged: String
        /// Of somebody whose address is at `example.com`.
        let staff: String
    }

    /// Where clients connect to, as the gateway says it.
    let gateway: String
    let admin: String
    /// The base URL of the pretended Apple.
    let apple: String
    let tokens: Tokens
    /// What was different from what could be expected, if anything.
    let note: String?

    var text: String {
        """
        Martlet: a gateway, an upstream that echoes, and a pretended Apple, all in this process. Ctrl-C ends it.

          gateway   \(gateway.hasPrefix("unix:") ? gateway : base)\(note.map { "   (\($0))" } ?? "")
          operator  http://\(admin)/readyz
          Apple     \(apple)/auth/keys

        The upstream answers with the request as it received it. Look for "x-user-id" in the answers.


        """ + steps.map(\.text).joined(separator: "\n") + "\n"
    }

    // MARK: Steps

    private struct Step {
        let expectation: String
        let command: String

        var text: String { "# \(expectation)\n\(command)\n" }
    }

    private var steps: [Step] {
        [
            Step(
                expectation: "200: a public route, and the X-User-Id that the client made up does not arrive",
                command: curl("/public/hello", "-H 'X-User-Id: somebody-else'")),
            Step(
                expectation: "401 credential_missing: this route wants to know who calls", command: curl("/v1/orders")),
            Step(
                expectation: "200: Apple vouches, the upstream gets X-User-Id and X-User-Provider, and never the token",
                command: curl("/v1/orders?page=2", bearer(tokens.good))),
            Step(
                expectation: "401 credential_invalid: the token has expired",
                command: curl("/v1/orders", bearer(tokens.expired))),
            Step(
                expectation: "401 credential_invalid: the token is forged, signed by somebody else's key",
                command: curl("/v1/orders", bearer(tokens.forged))),
            Step(
                expectation: "200: a credential is optional here, so nobody in particular may come",
                command: curl("/hello/world")),
            Step(
                expectation: "401 credential_invalid: optional or not, a bad credential is never nobody's",
                command: curl("/hello/world", bearer(tokens.expired))),
            Step(
                expectation: "403 not_allowed: known, but the e-mail address is not at example.com",
                command: curl("/v1/staff/plans", bearer(tokens.good))),
            Step(
                expectation: "200: this one's is, and the upstream gets it as X-User-Email",
                command: curl("/v1/staff/plans", bearer(tokens.staff))),
            Step(
                expectation: "400 request_invalid: no upstream has to guess what this path means",
                command: curl("/public/..%2fv1/orders", "--path-as-is")),
            Step(
                expectation: "200: the pretended Apple signs whatever you ask it to",
                command: """
                    curl -i -H 'Content-Type: application/json' \
                    -d '{"audience": "\(DemoConfiguration.audience)", "subject": "me", "email": "me@example.com"}' \
                    \(apple)/simulator/token
                    """),
        ]
    }

    private func bearer(_ token: String) -> String { "-H 'Authorization: Bearer \(token)'" }

    private func curl(_ target: String, _ options: String...) -> String {
        let socket = gateway.hasPrefix("unix:") ? ["--unix-socket '\(gateway.dropFirst(5))'"] : []
        return (["curl -i"] + socket + options + ["'\(base)\(target)'"]).joined(separator: " ")
    }

    /// The gateway as a client on this machine calls it: a listener on every address is reached by loopback.
    private var base: String {
        if gateway.hasPrefix("unix:") { return "http://localhost" }
        for (every, loopback) in [("0.0.0.0:", "127.0.0.1:"), ("[::]:", "[::1]:")] where gateway.hasPrefix(every) {
            return "http://\(loopback)\(gateway.dropFirst(every.count))"
        }
        return "http://\(gateway)"
    }
}
