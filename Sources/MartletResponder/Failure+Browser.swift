package import MartletCore

/// Error responses to browsers.
extension Failure {
    /// The fields of the gateway's own responses that pages of other origins may read, besides those that all may.
    package static var exposedFields: StaticString { "Retry-After, WWW-Authenticate, X-Request-Id" }

    /// A navigation that needs a session: the page to sign in at.
    package static func signIn(at location: String, _ reason: ErrorCode) -> Failure {
        Failure(status: 302, code: "sign_in_required", reason: reason, location: location)
    }

    /// A use of a cookie session that another site may have caused.
    package static func crossSite(_ reason: ErrorCode) -> Failure {
        Failure(status: 403, code: "cross_site", reason: reason)
    }

    /// A name that another user has.
    package static func usernameTaken(_ reason: ErrorCode) -> Failure {
        Failure(status: 409, code: "username_taken", reason: reason)
    }
}
