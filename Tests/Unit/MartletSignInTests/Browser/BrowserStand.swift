import MartletBrowser
import MartletCore
import MartletJSON
import MartletProvider
import MartletSessionTesting
import MartletTesting

@testable import MartletConfig
@testable import MartletResponder
@testable import MartletSession
@testable import MartletSignIn

/// The endpoints with a provider that redirects, one with passwords, and sessions in memory.
struct BrowserStand {
    static let origin = "https://app.example"

    let time = Box<Int64>(1_800_000_000_000)
    let site: ScriptedSite
    let frame: ScriptedSite
    let passwords: FormPasswords
    let stand: Stand
    let sessions: SessionStore

    /// - Parameter proofs: verifies proofs, which tokens need then; `nil` is none.
    init(
        hasAccounts: Bool = true, requiring proofs: ScriptedProofs? = nil,
        _ change: (inout BrowserConfiguration) -> Void = { _ in },
        stepUp: @escaping @Sendable (ReturnTarget) -> StepUpRequirement? = { _ in nil }
    ) {
        let clock = Clock.reading(time)
        let (site, frame) = (ScriptedSite(.query, clock: clock), ScriptedSite(.formPost, clock: clock))
        let passwords = FormPasswords(clock: clock)
        let sessions = SessionStore(
            policy: .sample, backend: MemorySessions(), clock: clock, onRevoked: { _ in }, onChanged: { _ in })
        var configuration = BrowserConfiguration.sample
        change(&configuration)
        (self.site, self.frame, self.passwords, self.sessions) = (site, frame, passwords, sessions)
        stand = Stand(hasAccounts: hasAccounts, clock: clock) { setup in
            setup.providers = [
                ProviderHandle(site, name: "site"), ProviderHandle(frame, name: "frame"),
                ProviderHandle(passwords, name: "password"),
            ]
            setup.sessions = sessions
            let key = SharedKey("browser-key", store: setup.store, keyPrefix: "martlet:", clock: clock)
            setup.browser = BrowserSetup(configuration, base: "/auth", sessions: sessions, key: key)
            setup.browser?.stepUp = stepUp
            setup.proofs = proofs
            setup.configuration.dpop = proofs == nil ? .off : .required
        }
    }

    /// A browser without cookies.
    func browser() -> Browser { Browser(stand) }

    /// Lets time pass.
    func advance(_ span: Duration) { time.withLock { $0 += span.wholeMilliseconds } }
}

extension BrowserSetup {
    /// With sessions of its own.
    static func sample(_ setup: SignInSetup, _ configuration: BrowserConfiguration = .sample) -> BrowserSetup {
        let sessions = SessionStore(
            policy: .sample, backend: MemorySessions(), clock: setup.clock, onRevoked: { _ in }, onChanged: { _ in })
        let key = SharedKey("browser-key", store: setup.store, keyPrefix: "martlet:", clock: setup.clock)
        return BrowserSetup(configuration, base: "/auth", sessions: sessions, key: key)
    }
}

extension BrowserConfiguration {
    /// That of `browser: { origin: https://app.example }` with an app.
    static var sample: BrowserConfiguration {
        let here = SourceLocation(file: "gw.yaml", line: 1, column: 1)
        return BrowserConfiguration(
            location: here, origin: Located(BrowserStand.origin, at: here),
            cookie: BrowserCookieConfiguration(
                name: "__Host-martlet", isSecure: true, sameSite: .lax, maximumAge: .seconds(30 * 86_400)),
            returnOrigins: ["https://other.example"], nativeRedirects: ["com.example.app:/cb"],
            pages: BrowserPagesConfiguration(), registers: false, registersLocation: here)
    }
}

/// A browser: it keeps cookies, and sends the fields that browsers send.
final class Browser {
    private let stand: Stand
    private(set) var cookies: [String: String] = [:]
    /// Of the next requests.
    var site = "same-origin"
    var agent = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"
    /// Where its requests come from; `nil` for that of the others.
    var network: ClientNetwork?
    /// Cookies that are blocked are not kept.
    var blocksCookies = false

    init(_ stand: Stand) { self.stand = stand }

    init(_ other: Browser) {
        stand = other.stand
        cookies = other.cookies
    }

    var session: String? { cookies["__Host-martlet"] }

    func forget(_ name: String) { cookies[name] = nil }
    func set(_ name: String, _ value: String) { cookies[name] = value }

    /// Loads a page.
    @discardableResult
    func get(_ target: String, _ fields: [(name: String, value: String)] = []) async -> Stand.Reply {
        await send("GET", target, nil, fields)
    }

    /// Sends a form.
    @discardableResult
    func post(
        _ target: String, _ form: [(String, String)], _ fields: [(name: String, value: String)] = []
    ) async -> Stand.Reply {
        let text = form.map { "\(Self.encode($0.0))=\(Self.encode($0.1))" }.joined(separator: "&")
        return await send("POST", target, text, fields)
    }

    /// The form token of a page.
    static func token(in reply: Stand.Reply) -> String {
        let page = String(decoding: reply.response.body, as: UTF8.self)
        return page.firstMatch(of: /name="csrf" value="([^"]+)"/).map { String($0.output.1) } ?? ""
    }

    /// Loads the page for signing in, and sends its form.
    @discardableResult
    func signIn(
        _ username: String = "ann", password: String = "correct horse", to target: String = "/"
    ) async
        -> Stand.Reply
    {
        let page = await get("/auth/sign-in?return_to=\(Self.encode(target))")
        return await post(
            "/auth/sign-in",
            [
                ("username", username), ("password", password), ("return_to", target),
                ("csrf", Self.token(in: page)),
            ])
    }

    private func send(
        _ method: String, _ target: String, _ body: String?, _ fields: [(name: String, value: String)]
    ) async -> Stand.Reply {
        var all = fields
        func add(_ name: String, _ value: String) {
            if !all.contains(where: { $0.name.lowercased() == name.lowercased() }) { all.append((name, value)) }
        }
        add("Sec-Fetch-Mode", "navigate")
        add("Sec-Fetch-Site", site)
        add("User-Agent", agent)
        if body != nil { add("Content-Type", Stand.form) }
        if !cookies.isEmpty {
            add("Cookie", cookies.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "; "))
        }
        let reply =
            if let network {
                await stand.send(method, target, Array((body ?? "").utf8), fields: all, from: network)
            } else {
                await stand.send(method, target, Array((body ?? "").utf8), fields: all)
            }
        keep(reply)
        return reply
    }

    private func keep(_ reply: Stand.Reply) {
        guard !blocksCookies else { return }
        for cookie in reply.setCookies {
            let pair = cookie.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            cookies[String(pair[0])] = cookie.contains("Max-Age=0") ? nil : String(pair[1])
        }
    }

    static func encode(_ text: String) -> String {
        text.utf8.map { byte in
            (0x61...0x7A).contains(byte | 0x20) && byte >= 0x41 || (0x30...0x39).contains(byte)
                ? String(UnicodeScalar(byte)) : "%" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }.joined()
    }
}

extension Stand.Reply {
    /// The values of `Set-Cookie`.
    var setCookies: [String] {
        response.fields.filter { $0.name == "Set-Cookie" }.map(\.value)
            + (response.failure?.setCookies ?? [])
    }

    var location: String? { field("Location") }
    var page: String { String(decoding: response.body, as: UTF8.self) }
    /// `303 /home`, `400 browser.attempt_unknown`.
    var outcome: String {
        let reason = response.reason?.rawValue ?? reason
        return [String(status), location, reason].compactMap(\.self).joined(separator: " ")
    }
}

/// Another site that users sign in at: the field `user` of its response is the user.
struct ScriptedSite: Redirecting {
    struct Configuration: ConfigurationDecodable {
        init() {}
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    struct Script: Sendable {
        var error: AuthenticationError?
        var completed = 0
        var verifiers: [String] = []
        var purposes: [AuthenticationContext.Purpose] = []
        var requests: [RedirectRequest] = []
        /// Holds the responses of a site of which a second one proves nothing.
        var single: Gate?
    }

    static let kind: ProviderKind = "site"
    let failureLimit = FailureLimit(attempts: 20, window: .seconds(60))
    let script = Box(Script())
    private let mode: RedirectFlow.ResponseMode
    private let clock: Clock

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        self.init(.query, clock: context.clock)
    }

    init(_ mode: RedirectFlow.ResponseMode, clock: Clock) {
        self.mode = mode
        self.clock = clock
    }

    func redirectFlow(in browser: BrowserKind) -> RedirectFlow? {
        RedirectFlow(responseMode: mode, origins: ["https://site.example"])
    }

    func authorizationURL(
        for attempt: RedirectAttempt, language: LanguageTag?, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String {
        if let error = script.value.error { throw error }
        script.withLock { $0.requests.append(attempt.request) }
        return AuthorizationURL.make(
            "https://site.example/authorize",
            [
                ("redirect_uri", attempt.redirectURI), ("state", attempt.state), ("nonce", attempt.nonce),
                ("code_challenge", attempt.codeChallenge),
            ])
    }

    func complete(
        _ callback: RedirectCallback, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> RedirectOutcome {
        let isUsed = script.withLock { script in
            script.completed += 1
            script.verifiers.append(callback.attempt.codeVerifier.withBytes { String(decoding: $0, as: UTF8.self) })
            script.purposes.append(context.purpose)
            return script.single != nil && script.completed > 1
        }
        if isUsed { throw .rejected("site.code_used") }
        await script.value.single?.pass()
        if let error = script.value.error { throw error }
        if try callback.fields.text("error", maximumBytes: 100) == "denied" { return .cancelled }
        guard let user = try callback.fields.text("user", maximumBytes: 100) else { throw .rejected("site.no_user") }
        let now = clock.unixTime
        return .signedIn(
            SignIn(
                identity: Identity(
                    providerSubject: user, issuer: "https://site.example",
                    claims: ["email": .string("\(user)@x.example")],
                    authTime: now, issuedAt: now, expiresAt: now.advanced(bySeconds: 600))))
    }
}

/// Users with passwords.
struct FormPasswords: SigningIn, PasswordChanging, PasswordSelfServing {
    typealias Configuration = ScriptedSite.Configuration

    static let kind: ProviderKind = "password"
    let users = Box(["ann": "correct horse"])
    let error = Box<AuthenticationError?>(nil)
    let minimumPasswordLength = 10
    private let clock: Clock

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        self.init(clock: context.clock)
    }

    init(clock: Clock) { self.clock = clock }

    var selfService: PasswordSelfService { PasswordSelfService() }
    var storesRecords: Bool { true }

    func signIn(with form: SignInForm, in context: AuthenticationContext) async throws(AuthenticationError) -> SignIn {
        if let error = error.value { throw error }
        let (name, password) = (try form.requiredText("username"), try form.requiredText("password"))
        guard users.value[name] == password || users.value["new"] == password else { throw .rejected("password.wrong") }
        let now = clock.unixTime
        return SignIn(
            identity: Identity(
                providerSubject: name, issuer: "martlet", claims: ["name": .string(name)], authTime: now, issuedAt: now,
                expiresAt: now))
    }

    func changePassword(
        of subject: String, from current: Secret, to new: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) {
        let (old, new) = (Self.text(current), Self.text(new))
        guard let known = users.value[subject] else { throw AuthenticationError("password.no_record", .notFound) }
        guard known == old else { throw .rejected("password.wrong") }
        guard new.utf8.count >= 10 else { throw .malformed("password.too_short", BodyError("new_password", .tooShort)) }
        users.withLock { $0[subject] = new }
    }

    func makeRecord(name: String, password: Secret) async throws(AuthenticationError) -> UserRecord {
        throw AuthenticationError("test.unused", .notFound)
    }

    func canonicalName(_ name: String) -> String? { name.contains(" ") ? nil : name.lowercased() }

    func hashNewPassword(
        _ password: Secret, member: String, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> String {
        let text = Self.text(password)
        guard text.utf8.count >= 10 else { throw .malformed("password.too_short", BodyError(member, .tooShort)) }
        users.withLock { $0["new"] = text }
        return "hash of \(text)"
    }

    func passwordWasReset(of key: String, in context: AuthenticationContext) async {}

    private static func text(_ secret: Secret) -> String { secret.withBytes { String(decoding: $0, as: UTF8.self) } }
}
