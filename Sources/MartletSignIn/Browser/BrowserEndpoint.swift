internal import MartletBrowser
internal import MartletConfig
internal import MartletProvider
internal import MartletResponder

/// One of the endpoints that browsers load, with what its name refers to.
enum BrowserEndpoint: Sendable {
    case signIn, signUp, signOut, signedOut
    case link(LinkFlow.Kind)
    /// The page; the JSON of the same path is another endpoint.
    case account
    case accountAction(AccountAction)
    /// The logo's version, which is part of its path.
    case logo(String)
    case start(RedirectingProvider?)
    case callback(RedirectingProvider?)

    /// The endpoint of a request; `nil` if it is for one of the others.
    static func find(_ request: LocalRequest, in setup: SignInSetup) -> BrowserEndpoint? {
        let base = setup.configuration.path
        guard request.path.utf8.starts(with: base.utf8) else { return nil }
        let segments = request.path.dropFirst(base.count).split(separator: "/", omittingEmptySubsequences: false)
        guard segments.first == "", let name = segments.dropFirst().first else { return nil }
        switch (name, segments.count) {
        case ("sign-in", 2): return .signIn
        case ("sign-up", 2): return setup.browser?.configuration.registers == true ? .signUp : nil
        case ("forgot", 2), ("reset", 2), ("verify", 2):
            return setup.browser == nil ? nil : LinkFlow.Kind(rawValue: String(name)).map { .link($0) }
        case ("account", 2):
            return NavigationRule.isNavigation(method: request.method, fields: request.fields) ? .account : nil
        case ("account", 3...): return action(segments[2...], in: setup).map { .accountAction($0) }
        case ("sign-out", 2): return .signOut
        case ("signed-out", 2): return .signedOut
        case ("logo", 3): return .logo(String(segments[2]))
        case ("start", 3): return .start(RedirectingProvider(String(segments[2]), in: setup))
        case ("callback", 3): return .callback(RedirectingProvider(String(segments[2]), in: setup))
        default: return nil
        }
    }

    /// What a form of the account's page does, by the segments below its path.
    private static func action(_ segments: ArraySlice<Substring>, in setup: SignInSetup) -> AccountAction? {
        guard let first = segments.first, let last = segments.last, !last.isEmpty else { return nil }
        switch (first, segments.count) {
        case ("password", 1): return .changePassword
        case ("delete", 1): return .delete
        case ("link", 2): return .link(RedirectingProvider(String(last), in: setup))
        case ("unlink", 2): return .unlink(String(last))
        case ("sessions", 2): return .endSession(String(last))
        default: return nil
        }
    }

    /// The value of `Allow`.
    var allow: String {
        isCallback
            ? methods.joined(separator: ", ")
            : methods.flatMap { $0 == "GET" ? ["GET", "HEAD"] : [$0] }.joined(separator: ", ")
    }

    var isCallback: Bool {
        if case .callback = self { return true }
        return false
    }

    /// Whether a request brings the credential of a login, which the limits of logins count.
    func readsLogin(_ method: String) -> Bool {
        switch self {
        case .signIn: method == "POST"
        case .callback, .accountAction(.changePassword): true
        default: false
        }
    }

    /// The allowed methods; GET implies HEAD, except of a callback, which uses up what it brings.
    var methods: [String] {
        switch self {
        case .signIn, .signUp, .link: ["GET", "POST"]
        case .signOut, .accountAction: ["POST"]
        case .signedOut, .logo, .start, .account: ["GET"]
        case .callback(let provider): provider?.callbackMethods ?? ["GET", "POST"]
        }
    }
}

/// A provider that signs users in at another site.
struct RedirectingProvider: Sendable {
    let handle: ProviderHandle
    let redirecting: any Redirecting

    var name: String { handle.name }

    /// How its responses come back: the provider decides that.
    var callbackMethods: [String] {
        let modes = BrowserKind.allCases.compactMap { redirecting.redirectFlow(in: $0)?.responseMode.method }
        return modes.isEmpty ? ["GET", "POST"] : Set(modes).sorted()
    }

    /// `nil` if there is none of that name.
    init?(_ name: String, in setup: SignInSetup) {
        guard let handle = setup.provider(name) else { return nil }
        self.init(handle)
    }

    init?(_ handle: ProviderHandle) {
        guard let redirecting = handle.redirecting else { return nil }
        self.handle = handle
        self.redirecting = redirecting
    }
}
