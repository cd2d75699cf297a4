import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider

/// A provider that only supports logins.
struct PlainProvider: SigningIn {
    typealias Configuration = ScriptedProvider.Configuration

    static let kind: ProviderKind = "plain"

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}

    init() {}

    func signIn(
        with form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        let identity = Identity(
            providerSubject: try form.requiredText("proof"), issuer: "plain", claims: [:], authTime: context.now,
            issuedAt: context.now, expiresAt: context.now)
        return SignIn(identity: identity)
    }
}
