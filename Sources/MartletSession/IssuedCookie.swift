package import MartletCore

/// The cookie token issued by a login of a browser, or by a privilege change.
package struct IssuedCookie: Sendable {
    package let token: Secret
    /// The remaining lifetime of the session; a cookie need not be kept that long.
    package let lifetime: Duration
    package let session: SessionReference
    package let provider: String
    /// The authentication that the session is based on.
    package let proof: SessionProof
    /// The version of the account's claims in the store; `nil` if they are not stored there, or it is not known.
    package let claimsVersion: Int64?
}
