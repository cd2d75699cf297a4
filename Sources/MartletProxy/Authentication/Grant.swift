internal import MartletCore
internal import MartletProvider

/// What a route decided about a verified token: kept beside the token, its header block attached.
struct Grant {
    /// Number of the reason for a denial; −1 when the caller may pass.
    let denial: Int32
    /// Index into the snapshot's providers.
    let provider: Int32
}

/// The principal behind a verified token.
struct ProvenPrincipal {
    let principal: Principal
    let provider: Int32
}

/// The outcome of judging a credential off the loop.
typealias Verdict = Result<ProvenIdentity, AuthenticationError>
