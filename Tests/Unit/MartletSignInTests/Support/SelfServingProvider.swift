import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting

/// A provider of password users whose hash of a password is `hash of <password>`, and a record of its calls.
struct SelfServingProvider: SigningIn, PasswordSelfServing {
    typealias Configuration = ScriptedProvider.Configuration

    static let kind: ProviderKind = "selfserving"
    let selfService: PasswordSelfService
    let hashed = Box<[String]>([])
    let resets = Box<[String]>([])
    /// Runs once, within a login, when the user is authenticated.
    let interruption = Box<(@Sendable () async -> Void)?>(nil)
    var storesRecords = true

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        selfService = PasswordSelfService()
    }

    init(_ selfService: PasswordSelfService) { self.selfService = selfService }

    func signIn(with form: SignInForm, in context: AuthenticationContext) async throws(AuthenticationError) -> SignIn {
        let proof = try form.requiredText("proof")
        let interruption = interruption.withLock { interruption in
            defer { interruption = nil }
            return interruption
        }
        await interruption?()
        let identity = Identity(
            providerSubject: proof, issuer: "test", claims: [:], authTime: context.now, issuedAt: context.now,
            expiresAt: context.now)
        return SignIn(identity: identity)
    }

    func makeRecord(name: String, password: Secret) async throws(AuthenticationError) -> UserRecord {
        throw AuthenticationError("test.unused", .notFound)
    }

    func canonicalName(_ name: String) -> String? { name.lowercased() }

    func hashNewPassword(
        _ password: Secret, member: String, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> String {
        let text = password.withBytes { String(decoding: $0, as: UTF8.self) }
        guard text.utf8.count >= 8 else { throw .malformed("test.too_short", BodyError(member, .tooShort)) }
        hashed.withLock { $0.append(text) }
        return "hash of \(text)"
    }

    func passwordWasReset(of key: String, in context: AuthenticationContext) async {
        resets.withLock { $0.append(key) }
    }
}
