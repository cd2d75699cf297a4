internal import MartletConfig
internal import MartletJSON
internal import MartletResponder

/// What OAuth clients read about the gateway.
enum AuthorizationServer {
    /// The metadata of RFC 8414 §2.
    ///
    /// There is no authorization endpoint: a sign-in starts with a provider, and apps call `start` of theirs.
    static func metadata(_ browser: BrowserSetup, _ setup: SignInSetup) -> JSONObject {
        let origin = browser.configuration.origin.value
        var document: JSONObject = [
            "issuer": .string(origin),
            "token_endpoint": .string("\(origin)\(browser.base)/token"),
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint": .string("\(origin)\(browser.base)/revoke"),
            "revocation_endpoint_auth_methods_supported": ["none"],
            "response_types_supported": [],
            "grant_types_supported": ["refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "ui_locales_supported": ["en", "zh-Hans", "zh-Hant"],
        ]
        if setup.configuration.dpop != .off {
            // RFC 9449 §5.1
            let algorithms = "\(Failure.proofAlgorithms)".split(separator: " ")
            document["dpop_signing_alg_values_supported"] = .array(algorithms.map { .string(String($0)) })
        }
        if setup.keySet != nil { document["jwks_uri"] = .string("\(origin)\(Endpoint.keySetPath)") }
        return document
    }
}
