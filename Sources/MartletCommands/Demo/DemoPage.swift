internal import MartletConfig
internal import MartletCore
private import MartletSimulator

/// The output of `martlet demo`: all addresses, and `curl` commands to paste, each with the expected response.
///
/// Every command works in any shell. A response that a later command needs is stored in the demo's folder.
struct DemoPage {
    /// The files with tokens of the simulated Apple: headers for `curl -H @FILE`, and the body of a login.
    enum File: String, CaseIterable {
        case good = "good-token"
        case expired = "expired-token"
        case forged = "forged-token"
        /// With an e-mail address at `example.com`.
        case staff = "staff-token"
        case login = "login.json"
    }

    /// The listener's address, as the gateway reports it.
    let gateway: String
    /// Under which browsers reach the gateway; `nil`: its pages are off.
    let origin: String?
    let admin: String
    /// The base URL of the simulated Apple.
    let apple: String
    /// The base URL of the simulated WeChat.
    let weChat: String
    /// Where the receiver of the webhook lists the events.
    let webhook: String
    /// The folder with the tokens, in which commands store responses for later commands.
    let folder: String
    /// The PEM file of the certificate authority; `nil` is clear text.
    let authority: String?
    /// Printed beside the gateway's address.
    let note: String?

    var text: String {
        """
        \(origin.map(invitation) ?? "")Martlet: a gateway, an echo upstream, a receiver of webhooks, and simulated Apple and WeChat servers, all in this
        process.
        Press Ctrl-C to stop it.

          gateway   \(gateway.hasPrefix("unix:") ? gateway : base)\(note.map { "   (\($0))" } ?? "")
          operator  http://\(admin)/readyz
          Apple     \(apple)/auth/keys
          WeChat    \(weChat)/simulator/calls
          events    \(webhook)

        The upstream responds with the request as it received it. Look for "x-auth-subject" in the responses.


        """ + chapters.map(\.text).joined(separator: "\n")
    }

    /// What to try first.
    private func invitation(_ origin: String) -> String {
        """
        Open \(origin)/me in a browser, and sign in with the simulated Apple, the simulated WeChat, or as
        "\(DemoConfiguration.user)" with the password "\(DemoConfiguration.password)". Your account: \(origin)/auth/account
        \(authority == nil ? "" : "The browser warns of the certificate, which was generated for this demo.\n")

        """
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

    private var chapters: [Chapter] {
        // The simulated Apple sends notifications over TCP.
        [requests, signingIn, ending] + (gateway.hasPrefix("unix:") ? [] : [identities])
            + (origin == nil ? [] : [browsers])
    }

    private var requests: Chapter {
        Chapter(
            title: "Authentication",
            steps: [
                Step(
                    expectation: "200: a public route; the forged X-Auth-Subject of the client is removed",
                    command: curl("/public/hello", "-H 'X-Auth-Subject: somebody-else'")),
                Step(
                    expectation: "401 credential_missing: this route requires a credential",
                    command: curl("/v1/orders")),
                Step(
                    expectation: "200: a valid Apple token; the upstream gets X-Auth-Subject, but not the token",
                    command: curl("/v1/orders?page=2", bearer(.good))),
                Step(
                    expectation: "401 credential_invalid: the token has expired",
                    command: curl("/v1/orders", bearer(.expired))),
                Step(
                    expectation: "401 credential_invalid: the token is forged, signed with another key",
                    command: curl("/v1/orders", bearer(.forged))),
                Step(
                    expectation: "200: a credential is optional on this route",
                    command: curl("/hello/world")),
                Step(
                    expectation: "401 credential_invalid: an invalid credential is never treated as anonymous",
                    command: curl("/hello/world", bearer(.expired))),
                Step(
                    expectation: "403 not_allowed: authenticated, but the e-mail address is not at example.com",
                    command: curl("/v1/staff/plans", bearer(.good))),
                Step(
                    expectation: "200: an e-mail address at example.com, which the upstream gets as X-User-Email",
                    command: curl("/v1/staff/plans", bearer(.staff))),
                Step(
                    expectation: "400 request_invalid: an ambiguous path is never forwarded",
                    command: curl("/public/..%2fv1/orders", "--path-as-is")),
                Step(
                    expectation: "200: the simulated Apple signs any token",
                    command: post(
                        "\(apple)/simulator/token",
                        #"{"audience": "\#(DemoConfiguration.audience)", "subject": "me", "email": "me@example.com"}"#)),
                Step(
                    expectation: "200: the calls of the simulated Apple: the gateway has fetched its keys",
                    command: "curl -i '\(apple)/simulator/requests'"),
            ])
    }

    private var signingIn: Chapter {
        Chapter(
            title: "Signing in",
            steps: [
                Step(
                    expectation: "200: an Apple token is exchanged for a session of the gateway",
                    command: curl("/auth/login/apple", json, "-d @\(folder)/\(File.login.rawValue)")
                        + store("apple")),
                Step(
                    expectation: "200: the session's access token authenticates the same subject",
                    command: curl("/v1/orders", session("apple"))),
                Step(
                    expectation: "200: Ada signs in at WeChat with her phone; her app gets a code",
                    command: post("\(weChat)/simulator/code", #"{"app_id": "\#(app)", "person": "Ada"}"#)
                        + store("code")),
                Step(
                    expectation: "204: she links WeChat to her account of the Apple login",
                    command: curl("/auth/link/wechat", session("apple"), "-d app=ios", code("code"))),
                Step(
                    expectation: "200: she signs in at WeChat again; a code is valid once",
                    command: post("\(weChat)/simulator/code", #"{"app_id": "\#(app)", "person": "Ada"}"#)
                        + store("next-code")),
                Step(
                    expectation: "200: the code is exchanged for a session of the same subject",
                    command: curl("/auth/login/wechat", "-d app=ios", code("next-code")) + store("wechat")),
                Step(
                    expectation: "200: its access token authenticates that subject",
                    command: curl("/v1/orders", session("wechat"))),
                Step(
                    expectation: "401 credential_invalid: an unknown code",
                    command: curl("/auth/login/wechat", "-d app=ios -d code=made-up")),
                Step(
                    expectation: "200: a password is exchanged for a session of another subject",
                    command: curl("/auth/login/password", form(DemoConfiguration.password)) + store("password")),
                Step(
                    expectation: "200: its access token is accepted, too",
                    command: curl("/v1/orders", session("password"))),
                Step(
                    expectation: "401 credential_invalid: a wrong password",
                    command: curl("/auth/login/password", form("letmein"))),
                Step(
                    expectation: "200: the current session",
                    command: curl("/auth/session", session("wechat"))),
            ])
    }

    private var ending: Chapter {
        Chapter(
            title: "Refresh and logout",
            steps: [
                Step(
                    expectation: "200: a refresh token is exchanged for a new pair; a repetition gets the same pair",
                    command: curl("/auth/refresh", "-d \"refresh_token=\(token(.refresh, in: "wechat"))\"")
                        + store("refreshed")),
                Step(
                    expectation: "200: the new access token is accepted",
                    command: curl("/v1/orders", session("refreshed"))),
                Step(
                    expectation: "204: the session is ended",
                    command: curl("/auth/logout", "-X POST", session("refreshed"))),
                Step(
                    expectation: "401 credential_invalid: none of its tokens is accepted any more",
                    command: curl("/v1/orders", session("wechat"))),
                Step(
                    expectation: "200: her session of the Apple login is still valid",
                    command: curl("/v1/orders", session("apple"))),
            ])
    }

    private var identities: Chapter {
        Chapter(
            title: "Apple after the login",
            steps: [
                Step(
                    expectation: "200: Eve signs in at Apple; her app gets an identity token and a code",
                    command: login(of: "eve") + store("eve")),
                Step(
                    expectation: "200: the gateway exchanges the code, and keeps Apple's refresh token encrypted",
                    command: curl("/auth/login/apple", credential("eve")) + store("first")),
                Step(
                    expectation:
                        "200: the same login again, as after a lost response, gets the same tokens; no code is sent twice",
                    command: curl("/auth/login/apple", credential("eve"))),
                Step(
                    expectation: "200: Apple confirms her identity: its state is authorized",
                    command: curl("/auth/account", session("first"))),
                Step(
                    expectation: "200: she withdraws her consent in Apple's settings; Apple notifies the gateway",
                    command: post(
                        "\(apple)/simulator/notification",
                        #"{"url": "\#(base)/auth/apple/notifications", "type": "consent-revoked", "#
                            + #""audience": "\#(DemoConfiguration.audience)", "subject": "eve", "apply": true}"#)),
                Step(
                    expectation: "401 credential_invalid: her session has ended",
                    command: curl("/auth/session", session("first"))),
                Step(
                    expectation: "200: she signs in again, and gives the consent again",
                    command: login(of: "eve") + store("eve-again")),
                Step(
                    expectation: "200: the same account",
                    command: curl("/auth/login/apple", credential("eve-again")) + store("second")),
                Step(
                    expectation: "202: she deletes her account, as apps must offer",
                    command: curl("/auth/account", "-X DELETE", session("second"))),
                Step(
                    expectation: "200: the webhook has every event, the last of them account.deleted",
                    command: "curl -i '\(webhook)?until=account.deleted'"),
                Step(
                    expectation: "200: Apple has got each code once at /auth/token, and the token at /auth/revoke",
                    command: "curl -i '\(apple)/simulator/requests'"),
            ])
    }

    private var browsers: Chapter {
        Chapter(
            title: "Browsers",
            steps: [
                Step(
                    expectation: "302: a page without a session: the browser is sent to the sign-in page",
                    command: curl("/me", "-H 'Accept: text/html'")),
                Step(
                    expectation: "200: the sign-in page, in Chinese",
                    command: curl("/auth/sign-in?return_to=/me", "-H 'Accept-Language: zh-CN'")),
                Step(
                    expectation: "302: a browser goes to Apple; the cookie binds the sign-in to it",
                    command: curl("/auth/start/apple?return_to=/me")),
                Step(
                    expectation:
                        "302: an app opens a browser for that; \(DemoConfiguration.nativeRedirect) gets a code",
                    command: curl(
                        "/auth/start/apple?client=native&redirect=\(DemoConfiguration.nativeRedirect)&code_challenge="
                            + Self.challenge)),
            ])
    }

    // MARK: Parts of commands

    /// Of the verifier `dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk` (RFC 7636 appendix B).
    private static let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

    private var app: String { DemoConfiguration.apps[0].id }
    private var json: String { "-H 'Content-Type: application/json'" }

    private func bearer(_ file: File) -> String { "-H @\(folder)/\(file.rawValue)" }

    private func post(_ url: String, _ body: String) -> String { "curl -i \(json) -d '\(body)' '\(url)'" }

    private func form(_ password: String) -> String {
        "-d username=\(DemoConfiguration.user) -d 'password=\(password)'"
    }

    /// Stores a command's response.
    private func store(_ name: String) -> String { " | tee \(folder)/\(name)" }

    /// The token with that prefix in a stored response.
    private func token(_ kind: OwnToken, in name: String) -> String {
        "$(grep -o '\(kind.prefix)[^\"]*' \(folder)/\(name))"
    }

    /// A login at the simulated Apple, with a code.
    private func login(of subject: String) -> String {
        post(
            "\(apple)/simulator/token",
            #"{"audience": "\#(DemoConfiguration.audience)", "subject": "\#(subject)", "code": true}"#)
    }

    /// The identity token and the code of a stored login.
    private func credential(_ name: String) -> String {
        "-d \"identity_token=$(grep -o 'eyJ[^\"]*' \(folder)/\(name))\" "
            + "-d \"authorization_code=$(grep -o 'code\":\"[^\"]*' \(folder)/\(name) | cut -c8-)\""
    }

    private func session(_ name: String) -> String { "-H \"Authorization: Bearer \(token(.access, in: name))\"" }

    private func code(_ name: String) -> String {
        "-d \"code=$(grep -o 'code\":\"[^\"]*' \(folder)/\(name) | cut -c8-)\""
    }

    private func curl(_ target: String, _ options: String...) -> String {
        let socket = gateway.hasPrefix("unix:") ? ["--unix-socket '\(gateway.dropFirst(5))'"] : []
        let trust = authority.map { ["--cacert \($0)"] } ?? []
        return (["curl -i"] + trust + socket + options + ["'\(base)\(target)'"]).joined(separator: " ")
    }

    /// The gateway's base URL for a client on this machine: loopback for a listener on all addresses.
    private var base: String {
        let scheme = authority == nil ? "http" : "https"
        if gateway.hasPrefix("unix:") { return "\(scheme)://localhost" }
        for (wildcard, loopback) in [("0.0.0.0:", "127.0.0.1:"), ("[::]:", "[::1]:")] where gateway.hasPrefix(wildcard)
        {
            return "\(scheme)://\(loopback)\(gateway.dropFirst(wildcard.count))"
        }
        return "\(scheme)://\(gateway)"
    }
}
