internal import MartletConfig
internal import MartletJSON
internal import MartletProvider

/// One of the served paths, with what its name refers to.
enum Endpoint: Sendable {
    case login(ProviderHandle, any SigningIn)
    case nonce, refresh, revocation, token, logout, session, sessions, identities
    /// The caller's account.
    case account
    case profile
    /// The notifications of a provider's issuer.
    case notifications(ProviderHandle, any Notifying)
    /// One of the caller's sessions.
    case oneSession(String)
    /// A provider's name; an identity can still be unlinked if the provider is no longer configured.
    case link(String, ProviderHandle?)
    case password, reauthentication
    case register, verifyRegistration, forgotPassword, resetPassword
    /// The OpenAPI description.
    case description
    case keySet(JSONObject)
    /// For OAuth clients (RFC 8414).
    case metadata(JSONObject)
    /// With the listed apps.
    case appSiteAssociation([String])
    /// With the URL of the page.
    case changePassword(String)

    /// The allowed methods; GET implies HEAD.
    var methods: [String] {
        switch self {
        case .login, .nonce, .refresh, .revocation, .token, .logout, .password, .reauthentication, .register,
            .verifyRegistration, .forgotPassword, .resetPassword, .notifications:
            ["POST"]
        case .account: ["GET", "DELETE"]
        case .profile: ["PATCH"]
        case .session, .sessions, .identities, .description, .metadata, .keySet, .appSiteAssociation, .changePassword:
            ["GET"]
        case .oneSession: ["DELETE"]
        case .link: ["POST", "DELETE"]
        }
    }

    /// The value of `Allow`, and of `Access-Control-Allow-Methods`.
    var allow: String {
        methods.flatMap { $0 == "GET" ? ["GET", "HEAD"] : [$0] }.joined(separator: ", ")
    }

    /// Whether a request brings the credential of a login, which the limits of logins count.
    func readsLogin(_ method: String) -> Bool {
        switch self {
        case .login, .reauthentication, .password: true
        case .link: method == "POST"
        default: false
        }
    }

    /// Whether pages of configured origins may call it; the others are for platforms and servers.
    var isForPages: Bool {
        switch self {
        case .metadata, .keySet, .appSiteAssociation, .changePassword, .notifications: false
        default: true
        }
    }
}

extension Endpoint {
    /// RFC 8414 §3; the issuer is the public origin, without a path.
    static let metadataPath = "/.well-known/oauth-authorization-server"
    static let keySetPath = "/.well-known/jwks.json"
    static let appSiteAssociationPath = "/.well-known/apple-app-site-association"
    static let changePasswordPath = "/.well-known/change-password"

    /// The endpoint of a normalized path; `nil` if there is none.
    static func find(_ path: String, in setup: SignInSetup) -> Endpoint? {
        // Only for ASCII does string equality imply equal bytes.
        guard path.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        switch path {
        case metadataPath: return setup.browser.map { .metadata(AuthorizationServer.metadata($0, setup)) }
        case keySetPath: return setup.keySet.map { .keySet($0) }
        case appSiteAssociationPath:
            let apps = setup.wellKnown.webCredentialApps
            return apps.isEmpty ? nil : .appSiteAssociation(apps)
        case changePasswordPath: return setup.wellKnown.changePasswordURL.map { .changePassword($0) }
        default: break
        }
        let base = setup.configuration.path
        guard path.hasPrefix(base) else { return nil }
        let segments = path.dropFirst(base.count).split(separator: "/", omittingEmptySubsequences: false)
        guard segments.first == "" else { return nil }
        return find(segments.dropFirst(), in: setup)
    }

    /// The endpoint of the segments below the base path.
    private static func find(_ segments: ArraySlice<Substring>, in setup: SignInSetup) -> Endpoint? {
        guard let first = segments.first, let last = segments.last, !last.isEmpty else { return nil }
        let name = String(last)
        switch (first, segments.count) {
        case ("nonce", 1): return .nonce
        case ("refresh", 1): return .refresh
        case ("revoke", 1): return .revocation
        case ("token", 1): return setup.browser == nil ? nil : .token
        case ("logout", 1): return .logout
        case ("session", 1): return .session
        case ("sessions", 1): return .sessions
        case ("identities", 1): return .identities
        case ("password", 1): return .password
        case ("reauthenticate", 1): return .reauthentication
        case ("account", 1): return .account
        case ("profile", 1): return .profile
        case ("password", 2): return name == "forgot" ? .forgotPassword : name == "reset" ? .resetPassword : nil
        case ("register", 1): return .register
        case ("register", 2): return name == "verify" ? .verifyRegistration : nil
        case ("openapi.json", 1): return .description
        case ("sessions", 2): return .oneSession(name)
        case ("login", 2):
            guard let provider = setup.provider(name), let signingIn = provider.signingIn else { return nil }
            return .login(provider, signingIn)
        case ("link", 2): return .link(name, setup.provider(name))
        case (let provider, 2) where name == "notifications":
            guard let provider = setup.provider(String(provider)), let notifying = provider.notifying else {
                return nil
            }
            return .notifications(provider, notifying)
        default: return nil
        }
    }
}
