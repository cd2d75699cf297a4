import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting

/// A scripted provider: `proof` is the user's subject.
struct ScriptedProvider: SigningIn, PasswordChanging, Unlinking, Notifying {
    struct Configuration: ConfigurationDecodable {
        init() {}
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    /// The results of the next calls, and a record of the calls.
    struct Script: Sendable {
        var error: AuthenticationError?
        /// Of whatever is sent.
        var rejection: AuthenticationError?
        var unlinkError: AuthenticationError?
        var claims: JSONObject = [:]
        var storedClaims: JSONObject = [:]
        var aliases: [String] = []
        var repetition: SignIn.Repetition?
        var unlessKnown: AuthenticationError?
        /// Whether the gateway is asked for its approval.
        var asks = false
        /// How often the user's proof was used up.
        var consumed = 0
        /// By subject.
        var passwords: [String: String] = [:]
        var logins = 0
        var unlinked: [String] = []
        var clients: [ClientNetwork?] = []
        var purposes: [AuthenticationContext.Purpose] = []
        /// Runs within a login, once the user is authenticated.
        var interruption: (@Sendable () async -> Void)?
    }

    static let kind: ProviderKind = "scripted"
    let script = Box(Script())
    private let clock: Clock

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) { clock = context.clock }

    init(clock: Clock) { self.clock = clock }

    func rejection(ofLoginFrom client: ClientNetwork?) -> AuthenticationError? { script.value.rejection }

    func signIn(
        with form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        let proof = try form.requiredText("proof")
        _ = try form.secret("secret")
        _ = try form.object("full_name")
        let script = script.withLock { script in
            script.logins += 1
            script.clients.append(context.client)
            script.purposes.append(context.purpose)
            return script
        }
        if let error = script.error { throw error }
        await script.interruption?()
        let now = clock.unixTime
        let identity = Identity(
            providerSubject: proof, issuer: "https://issuer.example", claims: script.claims, authTime: now,
            issuedAt: now, expiresAt: now)
        let result = SignIn(
            identity: identity, aliases: script.aliases, storedClaims: script.storedClaims,
            repetition: script.repetition, unlessKnown: script.unlessKnown)
        if script.asks { try await context.approve(result) }
        self.script.withLock { $0.consumed += 1 }
        return result
    }

    func changePassword(
        of subject: String, from current: Secret, to new: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) {
        if let error = script.value.error { throw error }
        guard let known = script.value.passwords[subject] else {
            throw AuthenticationError("test.no_record", .notFound)
        }
        let (old, new) = (Self.text(current), Self.text(new))
        guard known == old else { throw .rejected("test.wrong_password") }
        guard new.unicodeScalars.count >= 8 else { throw .malformed("test.too_short") }
        script.withLock { $0.passwords[subject] = new }
    }

    func unlink(_ subject: String) async throws(AuthenticationError) {
        if let error = script.value.unlinkError { throw error }
        script.withLock { $0.unlinked.append(subject) }
    }

    var acceptsNotifications: Bool { true }

    /// `payload` is the user's subject.
    func readNotification(
        _ form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProviderNotification {
        let subject = try form.requiredText("payload")
        if let error = script.value.error { throw error }
        return ProviderNotification(
            id: "\(subject) 1", type: "revoked", subject: subject, time: clock.unixMilliseconds,
            change: .consentRevoked)
    }

    private static func text(_ secret: Secret) -> String { secret.withBytes { String(decoding: $0, as: UTF8.self) } }
}

/// A provider that only verifies bearer tokens.
struct BearerOnlyProvider: Authenticating {
    typealias Configuration = ScriptedProvider.Configuration

    static let kind: ProviderKind = "bearer"
    var accepts: [CredentialSource] { [.bearerPrefix("raw_")] }

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}

    init() {}

    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        throw .rejected("test.rejected")
    }
}
