package import MartletCore

/// The runtime error codes of this module; configuration errors have the `config.` codes.
extension ErrorCode {
    /// The target of a redirect would be read as one on another host.
    package static let badRedirect: ErrorCode = "router.bad_redirect"

    /// A rewrite has made a path that no request could have, or needed too many steps.
    package static let rewriteRejected: ErrorCode = "router.bad_rewrite"

    /// The route has conditions, but the request has no principal.
    package static let policyNoPrincipal: ErrorCode = "policy.no_principal"
    /// A claim of a condition is absent or null.
    package static let policyClaimMissing: ErrorCode = "policy.claim_missing"
    /// The issuer left a claim out of the token, because it was too large, and says so.
    package static let policyClaimElsewhere: ErrorCode = "policy.claim_elsewhere"
    /// A claim has a type that the condition cannot compare.
    package static let policyClaimType: ErrorCode = "policy.claim_type"
    /// A claim does not satisfy the condition.
    package static let policyClaimMismatch: ErrorCode = "policy.claim_mismatch"
    /// The pattern of a `matches` exceeded its match limit on this claim.
    package static let policyMatchLimit: ErrorCode = "policy.match_limit"
    /// The credential is older than `max_age` of the route's `auth`.
    package static let policyTooOld: ErrorCode = "policy.too_old"
    /// The user authenticated longer ago than `max_age` in `authorize` allows.
    package static let policyAuthenticationTooOld: ErrorCode = "policy.authentication_too_old"
    /// The user did not authenticate at the level that `acr` in `authorize` requires.
    package static let policyAuthenticationLevel: ErrorCode = "policy.authentication_level"

    /// A header was omitted: an array without `join`, an object, or an array of such.
    package static let headerNotScalar: ErrorCode = "header.not_scalar"
    /// A header was omitted: its value has bytes that its encoding cannot represent.
    package static let headerNotPrintable: ErrorCode = "header.not_printable"
    /// A header was omitted: an element of the array contains the separator.
    package static let headerSeparatorInside: ErrorCode = "header.separator_inside"
    /// A header was omitted: its value is longer than ``HeaderInjection/maximumValueBytes``.
    package static let headerTooLong: ErrorCode = "header.too_long"

    /// The assertion was omitted: the credential has expired.
    package static let headerExpired: ErrorCode = "header.expired"
    /// The assertion was omitted: signing failed in libcrypto.
    package static let headerNotSigned: ErrorCode = "header.not_signed"
}
