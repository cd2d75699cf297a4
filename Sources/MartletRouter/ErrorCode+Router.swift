package import MartletCore

/// Every reason this room gives at run time; mistakes in the configuration have the `config.` codes.
extension ErrorCode {
    /// A `path_regex` took more steps on this path than it may: the request is refused.
    package static let routerMatchLimit: ErrorCode = "router.match_limit"

    /// The route has conditions and nobody is there to meet them.
    package static let policyNoPrincipal: ErrorCode = "policy.no_principal"
    /// A claim that a condition looks at is absent or null.
    package static let policyClaimMissing: ErrorCode = "policy.claim_missing"
    /// A claim is of a type that the condition does not compare with.
    package static let policyClaimType: ErrorCode = "policy.claim_type"
    /// A claim is not what the condition asks for.
    package static let policyClaimMismatch: ErrorCode = "policy.claim_mismatch"
    /// The pattern of a `matches` took more steps on this claim than it may.
    package static let policyMatchLimit: ErrorCode = "policy.match_limit"
    /// The proof is older than the route's `max_age`.
    package static let policyTooOld: ErrorCode = "policy.too_old"

    /// A header was left out: an array without `join`, an object, or an array of such.
    package static let headerNotScalar: ErrorCode = "header.not_scalar"
    /// A header was left out: its value has bytes that its encoding cannot carry.
    package static let headerNotPrintable: ErrorCode = "header.not_printable"
    /// A header was left out: an element of the array contains the separator.
    package static let headerSeparatorInside: ErrorCode = "header.separator_inside"
    /// A header was left out: its value is longer than ``HeaderInjection/maximumValueBytes``.
    package static let headerTooLong: ErrorCode = "header.too_long"

    /// The assertion was left out: the proof behind it has ended.
    package static let headerExpired: ErrorCode = "header.expired"
    /// The assertion was left out: libcrypto would not sign.
    package static let headerNotSigned: ErrorCode = "header.not_signed"
}
