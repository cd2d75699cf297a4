internal import MartletCore
internal import MartletProvider

/// What Apple's page posts or redirects to the callback.
enum WebResponse {
    /// A code, and what came with it.
    struct Login {
        let code: Secret
        let identityToken: Secret?
        /// Unverified, so for display only; Apple sends it once.
        let name: String?
    }

    case login(Login)
    /// The user has cancelled.
    case cancelled
    /// An error that Apple does not document here.
    case failed(String)

    private static let cancellation = "user_cancelled_authorize"
    private static let maximumErrorBytes = 128
    private static let maximumCodeBytes = 1024
    private static let maximumTokenBytes = 16 * 1024

    /// - Throws: `malformed` for fields that are missing, too long, or not Apple's.
    init(_ fields: CallbackFields) throws(AuthenticationError) {
        if let error = try fields.text("error", maximumBytes: Self.maximumErrorBytes) {
            self = error.hasSameBytes(as: Self.cancellation) ? .cancelled : .failed(error)
            return
        }
        let user = try fields.text("user", maximumBytes: LoginRequest.maximumUserBytes)
        self = .login(
            Login(
                code: try fields.requiredSecret("code", maximumBytes: Self.maximumCodeBytes),
                identityToken: try fields.secret("id_token", maximumBytes: Self.maximumTokenBytes),
                name: try user.flatMap { (user) throws(AuthenticationError) in
                    try LoginRequest.nameOfWebUser(user)
                }))
    }
}

/// Checks that a verified token belongs to an attempt.
struct WebChecks {
    let clientID: String
    let attempt: RedirectAttempt
    let configuration: AppleConfiguration

    /// The token must be of this client, not of another one of `audiences`, and have the attempt's nonce, whatever
    /// `nonce` demands of apps.
    func check(_ token: VerifiedToken) throws(AppleError) {
        guard token.audience.hasSameBytes(as: clientID) else {
            throw .badAudience("aud is not the client of the website")
        }
        guard let nonce = try token.claims.binding(.nonce) else { throw .nonceMissing }
        let sent = LoginChecks.sent(attempt.nonce, as: configuration.nonceForm(of: clientID))
        guard LoginChecks.areEqual(nonce, sent) else { throw .nonceMismatch }
    }
}
