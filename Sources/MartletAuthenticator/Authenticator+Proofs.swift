internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder

/// Credentials that are bound to a key or a certificate of the client (RFC 7800).
extension Authenticator {
    /// What follows from a credential's binding.
    enum ProofCheck {
        /// Nothing is missing: it is not bound, or the proof of this request was checked.
        case held
        case rejected(Failure)
        case needed(ProofRequest)
    }

    /// Whether the proof of a verified credential was checked, and whether its scheme fits its binding: a token that is
    /// bound to a key is no bearer token (RFC 9449 §7.1), and no other has the scheme `DPoP`.
    mutating func checkProof(
        _ presented: PresentedCredential, _ verified: VerifiedPrincipal, _ binding: CredentialBinding?,
        isCached: Bool, _ route: Int, _ time: LoopTime, _ credential: inout CredentialState
    ) -> ProofCheck {
        guard presented.isDPoP == (binding?.keyThumbprint != nil) else {
            return .rejected(.proofInvalid(presented.isDPoP ? "auth.token_not_bound" : "auth.bound_token"))
        }
        guard let binding, credential.proof != .held else { return .held }
        if !isCached {
            cachePrincipal(verified, presented, route: route, isDecisionCached: false, at: time)
        }
        return .needed(ProofRequest(binding, verified, presented.location(route)))
    }

    /// The outcome for a request whose proof did not hold, or could not be checked.
    @inline(never)
    func proofFailed(
        _ error: AuthenticationError, _ location: CredentialLocation, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        credential.proof = .none
        let failure = error.disposition == .rejected ? Failure.proofInvalid(error.code) : .authentication(error)
        return .rejected(Rejection(failure, .verification(error, location)))
    }
}
