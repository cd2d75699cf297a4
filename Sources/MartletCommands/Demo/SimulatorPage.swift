internal import MartletSimulator

/// The output of `martlet simulate`: the configuration for the simulator, and curl commands.
enum SimulatorPage {
    private static let json = "-H 'Content-Type: application/json'"

    private static let keyFile = "AuthKey_\(AppleSimulator.generatedKeyID).p8"

    /// - Parameters:
    ///   - url: the simulator's base URL.
    ///   - keys: the keys of the command line; empty if the simulator has generated one.
    static func apple(_ url: String, _ keys: [SimulatedDevelopers.Key]) -> String {
        let developerKey = """
            curl -s -o \(keyFile) '\(url)/simulator/private-key'
            chmod 600 \(keyFile)

            """
        return """
            A simulated Apple at \(url). It signs any token. Press Ctrl-C to stop it.

            A configuration of a gateway, such as config.yaml:

            version: 1
            accounts: { url: "sqlite:martlet.db", key_file: account.key }
            providers:
              apple:
                kind: apple
                audiences: [com.example.app]
                base_url: "\(url)"
            \(developer(keys))    notifications: true
            upstreams:
              api: { endpoints: ["builtin:echo"] }
            routes:
              - { name: all, match: { path: /** }, auth: { providers: [apple] }, upstream: api }

            # The files that it names, in its folder: the key of refresh tokens, and the private key for client secrets.
            martlet keygen accounts > account.key
            chmod 600 account.key
            \(keys.isEmpty ? developerKey : "")
            # A token for any user: choose subject, email, nonce and other claims.
            curl -s \(json) -d '{"audience": "com.example.app", "subject": "me", "email": "me@example.com"}' '\(url)/simulator/token'

            # A login with it, at a gateway on 127.0.0.1:8080:
            curl -i \(json) -d '{"identity_token": "TOKEN"}' 'http://127.0.0.1:8080/auth/login/apple'

            # The same with a code, which /auth/token exchanges for a refresh token.
            curl -s \(json) -d '{"audience": "com.example.app", "subject": "me", "code": true}' '\(url)/simulator/token'

            # A login with both, at the same gateway:
            curl -i \(json) -d '{"identity_token": "TOKEN", "authorization_code": "CODE"}' 'http://127.0.0.1:8080/auth/login/apple'

            # The user ends it all: refresh tokens are invalid from now on.
            curl -s \(json) -d '{"subject": "me", "state": "revoked"}' '\(url)/simulator/user'

            # The notification of that, to the gateway.
            curl -s \(json) -d '{"url": "http://127.0.0.1:8080/auth/apple/notifications", "audience": "com.example.app", "subject": "me", "type": "consent-revoked"}' '\(url)/simulator/notification'

            # Makes the next exchange or refresh fail as if Apple were down.
            curl -s \(json) -d '{"path": "/auth/token", "status": 500}' '\(url)/simulator/trouble'

            # What has arrived: codes and tokens by their SHA-256.
            curl -s '\(url)/simulator/requests'

            # A page to sign in on; it sends a code to the redirect_uri.
            curl -s '\(url)/auth/authorize?client_id=com.example.web&redirect_uri=http%3A%2F%2F127.0.0.1%3A8080%2F&response_type=code'

            # The keys of its signatures.
            curl -s '\(url)/auth/keys'

            """
    }

    /// The lines of the configuration with a developer's team and keys.
    private static func developer(_ keys: [SimulatedDevelopers.Key]) -> String {
        guard let first = keys.first else {
            return developer(team: AppleSimulator.generatedTeamID, id: AppleSimulator.generatedKeyID, file: keyFile)
        }
        let team = first.key.teamID
        guard keys.count > 1 else { return developer(team: team, id: first.key.keyID, file: quoted(first.file)) }
        let lines = keys.map {
            "      - { key_id: \($0.key.keyID), private_key_file: \(quoted($0.file)) }\n"
        }
        return "    team_id: \(team)\n    keys:\n\(lines.joined())"
    }

    private static func developer(team: String, id: String, file: String) -> String {
        """
            team_id: \(team)
            key_id: \(id)
            private_key_file: \(file)

        """
    }

    /// The pages that the applications of browsers have.
    private static func pages(_ url: String, _ apps: [SimulatedApp]) -> String {
        let callback = "redirect_uri=http%3A%2F%2F127.0.0.1%3A8080%2F&response_type=code"
        let website = apps.first { $0.variant == .website }.map { app in
            """
            # A page to sign in on; it sends a code to the redirect_uri.
            curl -s '\(url)/connect/qrconnect?appid=\(app.id)&\(callback)&scope=snsapi_login&state=1'


            """
        }
        let account = apps.first { $0.variant == .officialAccount }.map { app in
            """
            # The same inside WeChat, for whose browser curl passes here.
            curl -s -A MicroMessenger '\(url)/connect/oauth2/authorize?appid=\(app.id)&\(callback)&scope=snsapi_userinfo&state=1'


            """
        }
        return (website ?? "") + (account ?? "")
    }

    /// A path as a scalar of YAML.
    private static func quoted(_ path: String) -> String {
        "\"\(TerminalText.escaped(path.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")))\""
    }

    /// - Parameters:
    ///   - url: the simulator's base URL.
    ///   - apps: never empty.
    static func weChat(_ url: String, _ apps: [SimulatedApp]) -> String {
        let entries = apps.map { app in
            let secret =
                app.isDefault
                ? "app_secret: \(app.secret) }"
                : "app_secret_file: \(app.name).secret }   # contains the SECRET of --app"
            return "      \(app.name): { variant: \(app.variant.rawValue), app_id: \(app.id), \(secret)\n"
        }
        let codes = apps.map { app in
            """
            # A user signs in at \(app.name) (\(app.variant.rawValue)), which gets a code for one login:
            curl -s \(json) -d '{"app_id": "\(app.id)", "person": "Ada"}' '\(url)/simulator/code'
            curl -i -d app=\(app.name) -d code=CODE 'http://127.0.0.1:8080/auth/login/wechat'


            """
        }
        return """
            A simulated WeChat at \(url). It issues a code to any client. Press Ctrl-C to stop it.

            In the configuration of the gateway:

            providers:
              wechat:
                kind: wechat
                base_url: "\(url)"
                open_url: "\(url)"
                apps:
            \(entries.joined())
            \(codes.joined())\(pages(url, apps))# Makes the next code exchange fail as if WeChat were busy.
            curl -s \(json) -d '{"path": "/sns/oauth2/access_token", "errcode": -1}' '\(url)/simulator/trouble'

            # The number of calls of each path.
            curl -s '\(url)/simulator/calls'

            """
    }
}
