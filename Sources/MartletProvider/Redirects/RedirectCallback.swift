public import MartletCore
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

extension ErrorCode {
    /// The fields of a callback cannot be decoded, or there are too many.
    public static let redirectBadCallback: ErrorCode = "redirect.bad_callback"
    /// A callback came by GET instead of POST, or the reverse.
    public static let redirectBadMethod: ErrorCode = "redirect.bad_method"
    /// A field of a callback is longer than the other site's.
    public static let redirectFieldTooLong: ErrorCode = "redirect.field_too_long"
    /// A required field of a callback is absent.
    public static let redirectMissingField: ErrorCode = "redirect.missing_field"
    /// The provider has no redirects, or none in this kind of browser.
    public static let redirectNotConfigured: ErrorCode = "redirect.not_configured"
    /// A field of a callback occurs twice.
    public static let redirectRepeatedField: ErrorCode = "redirect.repeated_field"
    /// A callback has no `state`, or that of another attempt.
    public static let redirectStateMismatch: ErrorCode = "redirect.state_mismatch"
}
