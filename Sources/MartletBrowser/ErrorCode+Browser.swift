package import MartletCore

extension ErrorCode {
    /// A request has one of the gateway's cookies twice.
    package static let browserCookieRepeated: ErrorCode = "browser.cookie_repeated"
    /// The value of one of the gateway's cookies has bytes that no cookie of it has.
    package static let browserCookieMalformed: ErrorCode = "browser.cookie_malformed"
    /// The value of one of the gateway's cookies is longer than any that it sets.
    package static let browserCookieTooLong: ErrorCode = "browser.cookie_too_long"
    /// `Origin` or `Sec-Fetch-Site` is repeated.
    package static let browserOriginRepeated: ErrorCode = "browser.origin_repeated"
    /// A cookie session is used from another site, or nothing shows that it is not.
    package static let browserCrossSite: ErrorCode = "cross_site"
    /// No sign-in of this browser has the `state`: it is unknown, already used, or was started by another browser.
    package static let browserAttemptUnknown: ErrorCode = "browser.attempt_unknown"
    /// The sign-in was started too long ago.
    package static let browserAttemptExpired: ErrorCode = "browser.attempt_expired"
    /// The sign-in was started with another provider.
    package static let browserAttemptProvider: ErrorCode = "browser.attempt_provider"
    /// A sign-in has too much to be kept in a cookie.
    package static let browserAttemptTooLarge: ErrorCode = "browser.attempt_too_large"
    /// A form has no token, or one that was issued to another browser or for another form.
    package static let browserFormTokenInvalid: ErrorCode = "browser.form_token_invalid"
    /// A form was open for too long.
    package static let browserFormTokenExpired: ErrorCode = "browser.form_token_expired"
    /// The `redirect` of an app is not in `browser.native_redirects`.
    package static let browserRedirectUnknown: ErrorCode = "browser.redirect_unknown"
    /// A `code_challenge` is absent or not the SHA-256 of a verifier, or its method is not `S256`.
    package static let browserChallengeInvalid: ErrorCode = "browser.code_challenge_invalid"
    /// The `state` of an app is too long.
    package static let browserStateTooLong: ErrorCode = "browser.state_too_long"
}
