internal import MartletSimulator

/// What `martlet simulate` prints: the lines of a configuration that points at the simulator, and curl lines.
enum SimulatorPage {
    private static let json = "-H 'Content-Type: application/json'"

    /// - Parameter url: the simulator's base URL.
    static func apple(_ url: String) -> String {
        """
        A simulated Apple at \(url). It signs whatever it is asked to; Ctrl-C ends it.

        In the configuration of the gateway:

        providers:
          apple: { kind: apple, audiences: [com.example.app], base_url: "\(url)" }

        # A token for anybody: subject, email, nonce and other claims are yours to choose.
        curl -s \(json) -d '{"audience": "com.example.app", "subject": "me", "email": "me@example.com"}' '\(url)/simulator/token'

        # A login with it, at a gateway on 127.0.0.1:8080:
        curl -i \(json) -d '{"identity_token": "TOKEN"}' 'http://127.0.0.1:8080/auth/login/apple'

        # The keys that its tokens are signed with.
        curl -s '\(url)/auth/keys'

        """
    }

    /// - Parameters:
    ///   - url: the simulator's base URL.
    ///   - apps: never empty.
    static func weChat(_ url: String, _ apps: [SimulatedApp]) -> String {
        let entries = apps.map { app in
            let secret =
                app.isOurs
                ? "app_secret: \(app.secret) }" : "app_secret_file: \(app.name).secret }   # holds the SECRET of --app"
            return "      \(app.name): { variant: \(app.variant.rawValue), app_id: \(app.id), \(secret)\n"
        }
        let codes = apps.map { app in
            """
            # Somebody signs in at \(app.name) (\(app.variant.rawValue)), which gets a code for one login:
            curl -s \(json) -d '{"app_id": "\(app.id)", "person": "Ada"}' '\(url)/simulator/code'
            curl -i -d app=\(app.name) -d code=CODE 'http://127.0.0.1:8080/auth/login/wechat'


            """
        }
        return """
            A simulated WeChat at \(url). It gives a code to anybody; Ctrl-C ends it.

            In the configuration of the gateway:

            providers:
              wechat:
                kind: wechat
                base_url: "\(url)"
                apps:
            \(entries.joined())
            \(codes.joined())# The next exchange fails as WeChat's do when it is busy.
            curl -s \(json) -d '{"path": "/sns/oauth2/access_token", "errcode": -1}' '\(url)/simulator/trouble'

            # How often each of its paths was called.
            curl -s '\(url)/simulator/calls'

            """
    }
}
