internal import MartletConfig
internal import MartletCore
internal import MartletProvider

/// An entry of `accepts`.
struct AcceptBlock: ConfigurationDecodable {
    private static let maximumBytes = 64

    let bearerPrefix: Located<String>

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        bearerPrefix = try reader.required("bearer_prefix")
        let text = bearerPrefix.value
        guard (1...Self.maximumBytes).contains(text.utf8.count), text.utf8.allSatisfy(BearerToken.isAllowed) else {
            throw ConfigurationError(
                .configBadValue, at: bearerPrefix.location,
                "bearer_prefix: must be 1 to \(Self.maximumBytes) characters of a bearer token")
        }
        if let own = OwnToken.allCases.first(where: { text.hasPrefix($0.prefix) || $0.prefix.hasPrefix(text) }) {
            throw ConfigurationError(
                .configBadValue, at: bearerPrefix.location,
                "bearer_prefix: tokens that begin with '\(own.prefix)' are the gateway's own")
        }
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([.required("bearer_prefix", .text, "What the tokens begin with.")])
    }
}

/// `introspection`: where the issuer is asked about opaque tokens.
struct IntrospectionBlock: ConfigurationDecodable {
    let url: Located<URLText>
    let client: ClientAuthentication
    /// How long a response may be used again.
    let cache: Duration

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        cache = reader.optional("cache", default: .zero, in: .zero ... .seconds(3600))
        url = try reader.required("url")
        client = ClientAuthentication(
            id: try ClientAuthentication.clientID(&reader), method: .basic(try reader.secret("client_secret").value))
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("url", .url, "The introspection endpoint; https, or a loopback address."),
            .required("client_id", .text, "The id of the gateway at the issuer."),
            .optional(
                "cache", .duration, default: "0s",
                "How long a response may be used again; 0: every request asks."),
        ]).withSecret("client_secret", required: true, "The secret of `client_id`.")
    }
}

/// `web`: sign-in by redirect, with the code flow.
struct OIDCWebBlock: ConfigurationDecodable {
    /// How the client authenticates when it exchanges a code.
    enum Method: String, CaseIterable, ConfigurationValue {
        case basic = "client_secret_basic"
        case post = "client_secret_post"
        case none
    }

    let client: ClientAuthentication
    let scopes: [String]
    let responseMode: RedirectFlow.ResponseMode
    /// Whether codes are bound to a verifier (RFC 7636).
    let usesCodeChallenge: Bool
    let fetchesUserInfo: Bool
    let authorizationURL: Located<URLText>?
    let tokenURL: Located<URLText>?
    let userInfoURL: Located<URLText>?
    let parameters: AuthorizationParameters

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        scopes = reader.optional("scope", default: ["openid"])
        responseMode = reader.optional("response_mode", default: .query)
        let pkce = reader.optional("pkce", default: Located(true, at: reader.location))
        usesCodeChallenge = pkce.value
        fetchesUserInfo = reader.optional("userinfo", default: false)
        authorizationURL = reader.optional("authorization_url")
        tokenURL = reader.optional("token_url")
        userInfoURL = reader.optional("userinfo_url")
        parameters = try AuthorizationParameters(from: &reader)
        let method = reader.optional("auth_method", as: Located<Method>.self)
        let secret = reader.optionalSecret("client_secret")
        let id = try ClientAuthentication.clientID(&reader)
        if let node = reader.node("scope"), !scopes.contains(where: { $0.hasSameBytes(as: "openid") }) {
            throw ConfigurationError(.configBadValue, at: node.location, "scope: must have 'openid'")
        }
        guard scopes.allSatisfy(Self.isScope) else {
            throw ConfigurationError(.configBadValue, at: reader.location, "scope: has an entry that is not a scope")
        }
        client = ClientAuthentication(
            id: id, method: try Self.method(method, secret, at: reader.location, hasVerifier: pkce.value))
    }

    private static func isScope(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
    }

    private static func method(
        _ method: Located<Method>?, _ secret: Located<Secret>?, at location: SourceLocation, hasVerifier: Bool
    ) throws(ConfigurationError) -> ClientAuthentication.Method {
        switch (method?.value, secret) {
        case (.none?, let secret?):
            throw ConfigurationError(
                .configConflictingKeys, at: secret.location, "client_secret: is unused with 'auth_method: none'")
        case (.basic?, nil), (.post?, nil):
            throw ConfigurationError(
                .configMissingKey, at: location, "auth_method: needs 'client_secret' or 'client_secret_file'")
        case (nil, nil), (.none?, nil):
            // Nothing else would bind the code to this client.
            guard hasVerifier else {
                throw ConfigurationError(
                    .configBadValue, at: location, "pkce: must be true for a client without a secret")
            }
            return .none
        case (.post?, let secret?): return .post(secret.value)
        case (.basic?, let secret?), (nil, let secret?): return .basic(secret.value)
        }
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("client_id", .text, "The id of the website at the issuer."),
            .optional(
                "auth_method", .choice(Method.allCases.map(\.rawValue)), default: "client_secret_basic",
                "How the client authenticates when it exchanges a code; without a secret, `none`."),
            .optional("scope", .list(.text, nonEmpty: true), default: "[openid]", "What the user is asked to share."),
            .optional(
                "response_mode", .choice(RedirectFlow.ResponseMode.allCases.map(\.rawValue)), default: "query",
                "How the issuer's response comes back."),
            .optional(
                "pkce", .boolean, default: "true", "Whether codes are bound to the browser by a `code_challenge`."),
            .optional("userinfo", .boolean, default: "false", "Whether claims of the userinfo endpoint are added."),
            .optional(
                "parameters", .map(.text),
                "Further parameters of the authorization request, such as `prompt` or `audience`."),
            .optional(
                "forward", .list(.text, nonEmpty: true),
                "Arguments of the link that begins a sign-in which the authorization request gets, such as `login_hint`."
            ),
            .optional("authorization_url", .url, "The authorization endpoint, instead of the discovered one."),
            .optional("token_url", .url, "The token endpoint, instead of the discovered one."),
            .optional("userinfo_url", .url, "The userinfo endpoint, instead of the discovered one."),
        ]).withSecret("client_secret", required: false, "The secret of `client_id`.")
    }

    /// Checks the URLs.
    func validate(into diagnostics: inout Diagnostics) {
        let urls = [
            ("web.authorization_url", authorizationURL), ("web.token_url", tokenURL), ("web.userinfo_url", userInfoURL),
        ]
        for (key, url) in urls {
            if let url { OIDCConfiguration.check(url, key, into: &diagnostics) }
        }
    }
}

/// `login`: logins of apps that have got an ID token by themselves.
struct LoginBlock: ConfigurationDecodable {
    /// Whether a login needs a nonce.
    enum NoncePolicy: String, CaseIterable, ConfigurationValue {
        /// The nonce is ignored.
        case off
        /// The nonce may be the app's own or issued by the gateway, or be missing from both the body and the token.
        case optional
        /// The nonce must have been issued by the gateway.
        case required
    }

    /// The clients that ID tokens are issued to.
    let clientIDs: NonEmpty<String>
    let nonce: NoncePolicy
    /// How long after `iat` a token is accepted.
    let maximumAge: Duration

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        nonce = reader.optional("nonce", default: .optional)
        maximumAge = reader.optional("max_age", default: .seconds(600), in: .seconds(1) ... .seconds(86_400))
        clientIDs = try reader.required("client_ids")
        if clientIDs.contains(where: \.isEmpty) {
            throw ConfigurationError(
                .configBadValue, at: reader.location, "client_ids: an empty string matches nothing")
        }
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("client_ids", .list(.text, nonEmpty: true), "The clients whose ID tokens are accepted."),
            .optional(
                "nonce", .choice(NoncePolicy.allCases.map(\.rawValue)), default: "optional",
                "Whether a login needs a nonce; `required` accepts only those that the gateway issued."),
            .optional(
                "max_age", .duration, default: "10m", "How long after its `iat` a token is accepted for a login."),
        ])
    }
}
