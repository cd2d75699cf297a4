package import MartletHTTP
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
}

/// Why a request is rejected; in one word, because nearly no request is.
package final class Rejection {
    /// What the decision is based on.
    package enum Cause {
        /// The request or its credential does not fit the route.
        case request
        /// The credential's verification failed.
        case verification(AuthenticationError, FailedCredential)
        /// The caller does not meet the route's conditions.
        case policy
    }

    package let failure: Failure
    package let cause: Cause

    package init(_ failure: Failure, _ cause: Cause = .request) {
        self.failure = failure
        self.cause = cause
    }
}

/// A credential whose verification failed, for the debug log.
package struct FailedCredential {
    package let form: CredentialForm
    /// Where it is in the head.
    package let range: ByteRange
    package let route: Int
}

/// A credential to verify.
package final class VerificationRequest {
    package let form: CredentialForm
    package let credential: Credential
    package let target: Verifier.Target

    init(form: CredentialForm, credential: Credential, target: Verifier.Target) {
        self.form = form
        self.credential = credential
        self.target = target
    }
}
