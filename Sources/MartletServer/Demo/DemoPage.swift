internal import MartletConfig
private import MartletSimulator

/// What `martlet demo` prints: where everything is, and `curl` lines to paste, each with what to expect.
///
/// Each line stands for itself in any shell. What one answers and another needs is kept in the demo's folder.
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
    /// The base URL of the pretended WeChat.
    let weChat: String
    /// Where lines keep answers for the lines below them.
    let folder: String
    /// Who has signed the gateway's certificate, as PEM; `nil` is clear text.
    let authority: String?
    let tokens: Tokens
    /// What was different from what could be expected, if anything.
    let note: String?

    var text: String {
        """
        Martlet: a gateway, an upstream that echoes, a pretended Apple and a pretended WeChat, all in this process.
        Ctrl-C ends it.

          gateway   \(gateway.hasPrefix("unix:") ? gateway : base)\(note.map { "   (\($0))" } ?? "")
          operator  http://\(admin)/readyz
          Apple     \(apple)/auth/keys
          WeChat    \(weChat)/simulator/calls

        The upstream answers with the request as it received it. Look for "x-auth-subject" in the answers.


        """ + [requests, signingIn, ending].map(\.text).joined(separator: "\n")
    }

    // MARK: Steps

    private struct Step {
        let expectation: String
        let command: String

        var text: String { "# \(expectation)\n\(command)\n" }
    }

    private struct Chapter {
        let title: String
        let steps: [Step]

        var text: String { "── \(title) ──\n\n" + steps.map(\.text).joined(separator: "\n") }
    }

    private var requests: Chapter {
        Chapter(
            title: "Who is calling",
            steps: [
                Step(
                    expectation: "200: a public route, and the X-Auth-Subject that the client made up does not arrive",
                    command: curl("/public/hello", "-H 'X-Auth-Subject: somebody-else'")),
                Step(
                    expectation: "401 credential_missing: this route wants to know who calls",
                    command: curl("/v1/orders")),
                Step(
                    expectation: "200: Apple vouches; the upstream gets X-Auth-Subject, and never the token",
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
                    command: order(
                        "\(apple)/simulator/token",
                        #"{"audience": "\#(DemoConfiguration.audience)", "subject": "me", "email": "me@example.com"}"#)),
            ])
    }

    private var signingIn: Chapter {
        Chapter(
            title: "Signing in",
            steps: [
                Step(
                    expectation: "200: an Apple token becomes a session of the gateway's own",
                    command: curl("/auth/login/apple", json, "-d '{\"identity_token\": \"\(tokens.good)\"}'")
                        + keep("apple")),
                Step(
                    expectation: "200: the session's token reaches the upstream as the same subject",
                    command: curl("/v1/orders", session("apple"))),
                Step(
                    expectation: "200: somebody signs in at WeChat with her phone; her app gets a code",
                    command: order("\(weChat)/simulator/code", #"{"app_id": "\#(app)", "person": "Ada"}"#)
                        + keep("code")),
                Step(
                    expectation: "204: she links WeChat to the account that she has by Apple",
                    command: curl("/auth/link/wechat", session("apple"), "-d app=ios", code("code"))),
                Step(
                    expectation: "200: she signs in at WeChat again; a code works once",
                    command: order("\(weChat)/simulator/code", #"{"app_id": "\#(app)", "person": "Ada"}"#)
                        + keep("next-code")),
                Step(
                    expectation: "200: WeChat's code becomes a session too, of the same subject as Apple's",
                    command: curl("/auth/login/wechat", "-d app=ios", code("next-code")) + keep("wechat")),
                Step(
                    expectation: "200: and reaches the upstream as that subject",
                    command: curl("/v1/orders", session("wechat"))),
                Step(
                    expectation: "401 credential_invalid: a code of nobody's",
                    command: curl("/auth/login/wechat", "-d app=ios -d code=made-up")),
                Step(
                    expectation: "200: a password becomes a session, of somebody else",
                    command: curl("/auth/login/password", form(DemoConfiguration.password)) + keep("password")),
                Step(
                    expectation: "200: and reaches the upstream",
                    command: curl("/v1/orders", session("password"))),
                Step(
                    expectation: "401 credential_invalid: a wrong password",
                    command: curl("/auth/login/password", form("letmein"))),
                Step(
                    expectation: "200: who the gateway thinks you are",
                    command: curl("/auth/session", session("wechat"))),
            ])
    }

    private var ending: Chapter {
        Chapter(
            title: "Keeping on and leaving",
            steps: [
                Step(
                    expectation: "200: a refresh token becomes a new pair; sent twice it gives the same pair",
                    command: curl("/auth/refresh", "-d \"refresh_token=\(kept("mrt_", in: "wechat"))\"")
                        + keep("refreshed")),
                Step(
                    expectation: "200: the new pair is as good as the old one was",
                    command: curl("/v1/orders", session("refreshed"))),
                Step(
                    expectation: "204: the session is over",
                    command: curl("/auth/logout", "-X POST", session("refreshed"))),
                Step(
                    expectation: "401 credential_invalid: and nothing of it is good any more",
                    command: curl("/v1/orders", session("wechat"))),
                Step(
                    expectation: "200: her session by Apple goes on",
                    command: curl("/v1/orders", session("apple"))),
            ])
    }

    // MARK: Parts of commands

    private var app: String { DemoConfiguration.apps[0].id }
    private var json: String { "-H 'Content-Type: application/json'" }

    private func bearer(_ token: String) -> String { "-H 'Authorization: Bearer \(token)'" }

    private func order(_ url: String, _ body: String) -> String { "curl -i \(json) -d '\(body)' '\(url)'" }

    private func form(_ password: String) -> String {
        "-d username=\(DemoConfiguration.user) -d 'password=\(password)'"
    }

    /// Keeps a command's answer.
    private func keep(_ name: String) -> String { " | tee \(folder)/\(name)" }

    /// What begins so in an answer that was kept.
    private func kept(_ start: String, in name: String) -> String { "$(grep -o '\(start)[^\"]*' \(folder)/\(name))" }

    private func session(_ name: String) -> String { "-H \"Authorization: Bearer \(kept("mat_", in: name))\"" }

    private func code(_ name: String) -> String {
        "-d \"code=$(grep -o 'code\":\"[^\"]*' \(folder)/\(name) | cut -c8-)\""
    }

    private func curl(_ target: String, _ options: String...) -> String {
        let socket = gateway.hasPrefix("unix:") ? ["--unix-socket '\(gateway.dropFirst(5))'"] : []
        let trust = authority.map { ["--cacert \($0)"] } ?? []
        return (["curl -i"] + trust + socket + options + ["'\(base)\(target)'"]).joined(separator: " ")
    }

    /// The gateway as a client on this machine calls it: a listener on every address is reached by loopback.
    private var base: String {
        let scheme = authority == nil ? "http" : "https"
        if gateway.hasPrefix("unix:") { return "\(scheme)://localhost" }
        for (every, loopback) in [("0.0.0.0:", "127.0.0.1:"), ("[::]:", "[::1]:")] where gateway.hasPrefix(every) {
            return "\(scheme)://\(loopback)\(gateway.dropFirst(every.count))"
        }
        return "\(scheme)://\(gateway)"
    }
}
