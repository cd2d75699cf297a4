package import MartletProvider
package import MartletResponder

/// What the authenticator decided about a request; only a request that is authorized is decided without an allocation.
package enum AuthorizationOutcome: ~Copyable {
    /// It may be forwarded.
    case authorized(AuthorizedRequest)
    /// It goes no further.
    case rejected(Rejection)
    /// Its credential has to be verified first: submit it, and authorize the request again with the result.
    case pending(VerificationRequest)
    /// Its credential is valid, and bound: check the proof, and authorize the request again with the result.
    case unproven(ProofRequest)

    /// A rejection because of the request or its credential.
    ///
    /// Not inlined: what a rejection may have needs memory of a size that is found out at run time.
    @inline(never)
    package static func rejected(because failure: Failure) -> AuthorizationOutcome { .rejected(Rejection(failure)) }
}

/// Why a request is rejected; in one word, because nearly no request is.
@safe package final class Rejection {
    /// What the decision is based on.
    package enum Cause {
        /// The request or its credential does not fit the route.
        case request
        /// The credential's verification failed.
        case verification(AuthenticationError, CredentialLocation)
        /// The caller does not meet the route's conditions.
        case policy
    }

    package let failure: Failure
    package let cause: Cause
    /// The caller for the access log, as ``CallerNames`` writes it; empty if it is not known. Borrowed from the
    /// authenticator: valid until that decides again.
    package let names: UnsafeBufferPointer<UInt8>

    package init(_ failure: Failure, _ cause: Cause = .request) {
        self.failure = failure
        self.cause = cause
        unsafe names = UnsafeBufferPointer(start: nil, count: 0)
    }

    init(_ failure: Failure, _ cause: Cause = .request, names: UnsafeBufferPointer<UInt8>) {
        self.failure = failure
        self.cause = cause
        unsafe self.names = names
    }
}

/// A verified credential whose proof has to be checked.
package final class ProofRequest {
    package let binding: CredentialBinding
    package let verified: VerifiedPrincipal
    /// Where the credential is in the head.
    package let location: CredentialLocation

    init(_ binding: CredentialBinding, _ verified: VerifiedPrincipal, _ location: CredentialLocation) {
        self.binding = binding
        self.verified = verified
        self.location = location
    }
}

/// A credential to verify.
package final class VerificationRequest {
    package let form: CredentialForm
    package let credential: Credential
    package let target: Verifier.Target
    private let location: CredentialLocation

    init(_ location: CredentialLocation, credential: Credential, target: Verifier.Target) {
        form = location.form
        self.credential = credential
        self.target = target
        self.location = location
    }

    /// The proof of a verified credential.
    package init(_ request: ProofRequest, _ proof: PresentedProof, by verifier: any ProofVerifying) {
        (form, location) = (request.location.form, request.location)
        credential = proof.token
        target = .proof(verifier, proof, request.verified)
    }

    /// Whether it is a proof of a credential that was verified before.
    package var isProof: Bool {
        if case .proof = target { true } else { false }
    }

    /// The rejection of a request whose credential the provider does not verify, whatever it is, because it throttles
    /// the client.
    package func rejection(of client: ClientNetwork?) -> Rejection? {
        guard case .provider(let handle) = target, let throttling = handle.throttling, let client,
            let error = throttling.rejection(of: client)
        else { return nil }
        return Rejection(.authentication(error), .verification(error, location))
    }
}
