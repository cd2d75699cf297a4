internal import MartletCore

/// Why a sign-in request was rejected, for logs and metrics; clients only see the coarse code.
extension ErrorCode {
    /// There is no endpoint with that path.
    static let signInUnknownEndpoint: ErrorCode = "signin.unknown_endpoint"
    /// No provider of that name accepts logins.
    static let signInUnknownProvider: ErrorCode = "signin.unknown_provider"
    /// Linking identities requires an account store.
    static let signInNoAccounts: ErrorCode = "signin.no_accounts"
    /// The body is longer than 64 KiB.
    static let signInBodyTooLarge: ErrorCode = "signin.body_too_large"
    /// The required body is missing.
    static let signInBodyMissing: ErrorCode = "signin.body_missing"
    /// The `Content-Type` is missing, or is neither JSON nor a form.
    static let signInMediaType: ErrorCode = "signin.unsupported_media_type"
    /// The body is compressed, or its charset is not UTF-8.
    static let signInEncoding: ErrorCode = "signin.unsupported_encoding"
    /// JSON that is not an object.
    static let signInNotAnObject: ErrorCode = "signin.not_an_object"
    /// A member that is repeated.
    static let signInRepeatedMember: ErrorCode = "signin.repeated_member"
    /// A member that the caller cannot change.
    static let signInUnknownMember: ErrorCode = "signin.unknown_member"
    /// A form with a bad escape, a control character or text that is not UTF-8.
    static let signInBadForm: ErrorCode = "signin.bad_form"
    /// A `device_name` that is too long, or contains control characters.
    static let signInBadDeviceName: ErrorCode = "signin.bad_device_name"
    /// A session cookie and an `Authorization` in one request.
    static let signInTwoCredentials: ErrorCode = "auth.two_credentials"
    /// A code that is unknown, was used, or has expired; or its verifier is another one.
    static let signInBadCode: ErrorCode = "signin.bad_code"
    /// A `grant_type` other than `authorization_code`.
    static let signInBadGrantType: ErrorCode = "signin.bad_grant_type"
    /// A form that deletes the account came without its confirmation.
    static let signInNotConfirmed: ErrorCode = "signin.not_confirmed"
    /// An ambiguous query, such as `all=1`.
    static let signInBadQuery: ErrorCode = "signin.bad_query"
    /// A credential that is not a session's, where a session is required.
    static let signInSessionNeeded: ErrorCode = "signin.session_needed"
    /// An `Authorization` that is not `Bearer` and one token.
    static let signInBadAuthorization: ErrorCode = "signin.bad_authorization"
    /// The caller has no session of that id.
    static let signInUnknownSession: ErrorCode = "signin.unknown_session"
    /// The caller's account has no password.
    static let signInNoPassword: ErrorCode = "signin.no_password"
    /// The identity was unlinked, or its password changed, while the login was in progress.
    static let signInOvertaken: ErrorCode = "signin.overtaken"
    /// An identical request is in progress, and its response was not available in time.
    static let signInRepetitionUnknown: ErrorCode = "signin.repetition_unknown"
    /// The client's network has requested too many nonces, or had too many failed logins or refreshes.
    static let signInBudgetExceeded: ErrorCode = "signin.budget_exceeded"
    /// The user authenticated too long ago for this endpoint.
    static let signInProofTooOld: ErrorCode = "signin.proof_too_old"
    /// A credential that does not belong to the caller's account.
    static let signInOtherAccount: ErrorCode = "signin.other_account"
    /// The deletion of the account was requested; a login takes it back.
    static let accountDeleted: ErrorCode = "account.deleted"
    /// An `email` that is not an address.
    static let signInBadAddress: ErrorCode = "signin.bad_address"
    /// A name that looks like an address, where only a mail can make the user of an address.
    static let signInAddressAsName: ErrorCode = "signin.address_as_name"
    /// A `name` that is too long, or has no visible character.
    static let signInBadName: ErrorCode = "signin.bad_name"
    /// A `locale` that is not a language tag.
    static let signInBadLocale: ErrorCode = "signin.bad_locale"
    /// A link that is unknown, used or expired.
    static let signInBadLink: ErrorCode = "signin.bad_link"
    /// The network has caused as many mails to the address as it may; only in the log.
    static let signInTooManyMails: ErrorCode = "signin.too_many_mails"
    /// No random bytes are available for a link.
    static let signInNoEntropy: ErrorCode = "signin.no_entropy"
}
