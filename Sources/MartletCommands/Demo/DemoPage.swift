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

    let gateway: String
    /// Under which browsers reach the gateway; `nil`: its pages are off.
    let origin: String?
    let admin: String
    let apple: String
    let weChat: String
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

    private struct Chapter {
        let title: String
        /// Commands by the responses to expect of them.
        let steps: KeyValuePairs<String, String>

        var text: String {
            "── \(title) ──\n\n" + steps.map { "# \($0.key)\n\($0.value)\n" }.joined(separator: "\n")
        }
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
                "200: a public route; the forged X-Auth-Subject of the client is removed":
                    curl("/public/hello", "-H 'X-Auth-Subject: somebody-else'"),
                "401 credential_missing: this route requires a credential":
                    curl("/v1/orders"),
                "200: a valid Apple token; the upstream gets X-Auth-Subject, but not the token":
                    curl("/v1/orders?page=2", bearer(.good)),
                "401 credential_invalid: the token has expired":
                    curl("/v1/orders", bearer(.expired)),
                "401 credential_invalid: the token is forged, signed with another key":
                    curl("/v1/orders", bearer(.forged)),
                "200: a credential is optional on this route":
                    curl("/hello/world"),
                "401 credential_invalid: an invalid credential is never treated as anonymous":
                    curl("/hello/world", bearer(.expired)),
                "403 not_allowed: authenticated, but the e-mail address is not at example.com":
                    curl("/v1/staff/plans", bearer(.good)),
                "200: an e-mail address at example.com, which the upstream gets as X-User-Email":
                    curl("/v1/staff/plans", bearer(.staff)),
                "400 request_invalid: an ambiguous path is never forwarded":
                    curl("/public/..%2fv1/orders", "--path-as-is"),
                "200: the simulated Apple signs any token":
                    post(
                        "\(apple)/simulator/token",
                        #"{"audience": "\#(DemoConfiguration.audience)", "subject": "me", "email": "me@example.com"}"#),
                "200: the calls of the simulated Apple: the gateway has fetched its keys":
                    "curl -i '\(apple)/simulator/requests'",
            ])
    }

    private var signingIn: Chapter {
        Chapter(
            title: "Signing in",
            steps: [
                "200: an Apple token is exchanged for a session of the gateway":
                    curl("/auth/login/apple", json, "-d @\(folder)/\(File.login.rawValue)") + store("apple"),
                "200: the session's access token authenticates the same subject":
                    curl("/v1/orders", session("apple")),
                "200: Ada signs in at WeChat with her phone; her app gets a code":
                    post("\(weChat)/simulator/code", #"{"app_id": "\#(app)", "person": "Ada"}"#) + store("code"),
                "204: she links WeChat to her account of the Apple login":
                    curl("/auth/link/wechat", session("apple"), "-d app=ios", code("code")),
                "200: she signs in at WeChat again; a code is valid once":
                    post("\(weChat)/simulator/code", #"{"app_id": "\#(app)", "person": "Ada"}"#) + store("next-code"),
                "200: the code is exchanged for a session of the same subject":
                    curl("/auth/login/wechat", "-d app=ios", code("next-code")) + store("wechat"),
                "200: its access token authenticates that subject":
                    curl("/v1/orders", session("wechat")),
                "401 credential_invalid: an unknown code":
                    curl("/auth/login/wechat", "-d app=ios -d code=made-up"),
                "200: a password is exchanged for a session of another subject":
                    curl("/auth/login/password", form(DemoConfiguration.password)) + store("password"),
                "200: its access token is accepted, too":
                    curl("/v1/orders", session("password")),
                "401 credential_invalid: a wrong password":
                    curl("/auth/login/password", form("letmein")),
                "200: the current session":
                    curl("/auth/session", session("wechat")),
            ])
    }

    private var ending: Chapter {
        Chapter(
            title: "Refresh and logout",
            steps: [
                "200: a refresh token is exchanged for a new pair; a repetition gets the same pair":
                    curl("/auth/refresh", "-d \"refresh_token=\(token(.refresh, in: "wechat"))\"") + store("refreshed"),
                "200: the new access token is accepted":
                    curl("/v1/orders", session("refreshed")),
                "204: the session is ended":
                    curl("/auth/logout", "-X POST", session("refreshed")),
                "401 credential_invalid: none of its tokens is accepted any more":
                    curl("/v1/orders", session("wechat")),
                "200: her session of the Apple login is still valid":
                    curl("/v1/orders", session("apple")),
            ])
    }

    private var identities: Chapter {
        Chapter(
            title: "Apple after the login",
            steps: [
                "200: Eve signs in at Apple; her app gets an identity token and a code":
                    login(of: "eve") + store("eve"),
                "200: the gateway exchanges the code, and keeps Apple's refresh token encrypted":
                    curl("/auth/login/apple", credential("eve")) + store("first"),
                "200: the same login again, as after a lost response, gets the same tokens; no code is sent twice":
                    curl("/auth/login/apple", credential("eve")),
                "200: Apple confirms her identity: its state is authorized":
                    curl("/auth/account", session("first")),
                "200: she withdraws her consent in Apple's settings; Apple notifies the gateway":
                    post(
                        "\(apple)/simulator/notification",
                        #"{"url": "\#(base)/auth/apple/notifications", "type": "consent-revoked", "#
                            + #""audience": "\#(DemoConfiguration.audience)", "subject": "eve", "apply": true}"#),
                "401 credential_invalid: her session has ended":
                    curl("/auth/session", session("first")),
                "200: she signs in again, and gives the consent again":
                    login(of: "eve") + store("eve-again"),
                "200: the same account":
                    curl("/auth/login/apple", credential("eve-again")) + store("second"),
                "202: she deletes her account, as apps must offer":
                    curl("/auth/account", "-X DELETE", session("second")),
                "200: the webhook has every event, the last of them account.deleted":
                    "curl -i '\(webhook)?until=account.deleted'",
                "200: Apple has got each code once at /auth/token, and the token at /auth/revoke":
                    "curl -i '\(apple)/simulator/requests'",
            ])
    }

    private var browsers: Chapter {
        Chapter(
            title: "Browsers",
            steps: [
                "302: a page without a session: the browser is sent to the sign-in page":
                    curl("/me", "-H 'Accept: text/html'"),
                "200: the sign-in page, in Chinese":
                    curl("/auth/sign-in?return_to=/me", "-H 'Accept-Language: zh-CN'"),
                "302: a browser goes to Apple; the cookie binds the sign-in to it":
                    curl("/auth/start/apple?return_to=/me"),
                "302: an app opens a browser for that; \(DemoConfiguration.nativeRedirect) gets a code":
                    curl(
                        "/auth/start/apple?client=native&redirect=\(DemoConfiguration.nativeRedirect)&code_challenge="
                            + Self.challenge),
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

    private func store(_ name: String) -> String { " | tee \(folder)/\(name)" }

    /// The token with that prefix in a stored response.
    private func token(_ kind: OwnToken, in name: String) -> String {
        "$(grep -o '\(kind.prefix)[^\"]*' \(folder)/\(name))"
    }

    private func login(of subject: String) -> String {
        post(
            "\(apple)/simulator/token",
            #"{"audience": "\#(DemoConfiguration.audience)", "subject": "\#(subject)", "code": true}"#)
    }

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

    /// The gateway's base URL for a client on this machine.
    private var base: String {
        let host = gateway.hasPrefix("unix:") ? "localhost" : StartBanner.reachable(gateway)
        return "\(authority == nil ? "http" : "https")://\(host)"
    }
}
