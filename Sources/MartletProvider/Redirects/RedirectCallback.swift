internal import MartletCore
private import MartletCrypto

/// A response of another site that belongs to an attempt: it has the attempt's `state`, and came as it should.
///
/// No provider gets any other: nothing else is checked, in particular not who the user is.
public struct RedirectCallback: Sendable {
    public let fields: CallbackFields
    public let attempt: RedirectAttempt

    /// - Parameters:
    ///   - fields: what the browser sent.
    ///   - attempt: what the browser's cookie has.
    ///   - flow: how the provider's responses come back in the attempt's kind of browser.
    /// - Throws: `malformed` with `redirect.bad_method` for the other method, `rejected` with `redirect.state_mismatch`
    ///   for another attempt's response, or one without `state`.
    public init(
        _ fields: CallbackFields, of attempt: RedirectAttempt, in flow: RedirectFlow
    ) throws(AuthenticationError) {
        guard fields.responseMode == flow.responseMode else { throw .malformed(.redirectBadMethod) }
        guard let state = fields.state, ConstantTime.areEqual(Array(state.utf8), Array(attempt.state.utf8)) else {
            throw .rejected(.redirectStateMismatch)
        }
        self.fields = fields
        self.attempt = attempt
    }
}

extension AuthenticationError {
    /// The provider has no redirects, or none in this kind of browser.
    public static var noRedirect: AuthenticationError { AuthenticationError(.redirectNotConfigured, .notFound) }
}
