internal import MartletSimulator

/// The output of `martlet simulate`: the configuration for the simulator, and curl commands.
enum SimulatorPage {
    private static let json = "-H 'Content-Type: application/json'"

    /// - Parameter url: the simulator's base URL.
    static func apple(_ url: String) -> String {
        """
        A simulated Apple at \(url). It signs any token. Press Ctrl-C to stop it.

        In the configuration of the gateway:

        providers:
          apple: { kind: apple, audiences: [com.example.app], base_url: "\(url)" }

        # A token for any user: choose subject, email, nonce and other claims.
        curl -s \(json) -d '{"audience": "com.example.app", "subject": "me", "email": "me@example.com"}' '\(url)/simulator/token'

        # A login with it, at a gateway on 127.0.0.1:8080:
        curl -i \(json) -d '{"identity_token": "TOKEN"}' 'http://127.0.0.1:8080/auth/login/apple'

        # The keys of its signatures.
        curl -s '\(url)/auth/keys'

        """
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
                apps:
            \(entries.joined())
            \(codes.joined())# Makes the next code exchange fail as if WeChat were busy.
            curl -s \(json) -d '{"path": "/sns/oauth2/access_token", "errcode": -1}' '\(url)/simulator/trouble'

            # The number of calls of each path.
            curl -s '\(url)/simulator/calls'

            """
    }
}
