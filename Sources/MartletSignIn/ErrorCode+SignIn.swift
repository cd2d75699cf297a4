internal import MartletCore

/// Why a request for sign-in was refused, as logs and metrics have it; clients see the coarse code alone.
extension ErrorCode {
    /// Nothing here has that path.
    static let signInUnknownEndpoint: ErrorCode = "signin.unknown_endpoint"
    /// No provider of that name takes logins.
    static let signInUnknownProvider: ErrorCode = "signin.unknown_provider"
    /// Identities can be linked only where accounts are kept.
    static let signInNoAccounts: ErrorCode = "signin.no_accounts"
    /// The body is longer than 64 KiB.
    static let signInBodyTooLarge: ErrorCode = "signin.body_too_large"
    /// There is no body where one is needed.
    static let signInBodyMissing: ErrorCode = "signin.body_missing"
    /// The body does not say what it is, or is neither JSON nor a form.
    static let signInMediaType: ErrorCode = "signin.unsupported_media_type"
    /// The body is compressed, or in other letters than UTF-8.
    static let signInEncoding: ErrorCode = "signin.unsupported_encoding"
    /// JSON that is no object.
    static let signInNotAnObject: ErrorCode = "signin.not_an_object"
    /// A member that is there twice.
    static let signInRepeatedMember: ErrorCode = "signin.repeated_member"
    /// A form with a bad escape, a control character or text that is not UTF-8.
    static let signInBadForm: ErrorCode = "signin.bad_form"
    /// A `device_name` that is too long, or has control characters.
    static let signInBadDeviceName: ErrorCode = "signin.bad_device_name"
    /// A query that can be read in two ways, such as `all=1`.
    static let signInBadQuery: ErrorCode = "signin.bad_query"
    /// A credential that is no session's where a session is needed.
    static let signInSessionNeeded: ErrorCode = "signin.session_needed"
    /// An `Authorization` that is not `Bearer` and one token.
    static let signInBadAuthorization: ErrorCode = "signin.bad_authorization"
    /// The caller has no session of that id.
    static let signInUnknownSession: ErrorCode = "signin.unknown_session"
    /// The caller's account has no password.
    static let signInNoPassword: ErrorCode = "signin.no_password"
    /// The identity was unlinked, or its password changed, while the login was on its way.
    static let signInOvertaken: ErrorCode = "signin.overtaken"
    /// The same post is under way, and its answer did not come in time.
    static let signInRepetitionUnknown: ErrorCode = "signin.repetition_unknown"
    /// The client's network has asked for too many nonces, or failed too often at what needs no proof.
    static let signInBudgetExceeded: ErrorCode = "signin.budget_exceeded"
}
