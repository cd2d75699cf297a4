public import MartletCore

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
