internal import MartletCore
internal import MartletHTTP
internal import MartletProvider

/// What the authenticator decided about a request; only a request that is authorized is decided without an allocation.
enum AuthorizationOutcome: ~Copyable {
    /// It may be forwarded.
    case authorized(AuthorizedRequest)
    /// It goes no further.
    case rejected(Rejection)
    /// Its credential has to be verified first: submit it, and authorize the request again with the result.
    case pending(VerificationRequest)
}

/// Why a request is rejected; in one word, because nearly no request is.
final class Rejection {
    enum Cause {
        /// The request or its credential does not fit the route.
        case request
        /// The credential's verification failed.
        case verification(AuthenticationError, FailedCredential)
        /// The caller does not meet the route's conditions.
        case policy
    }

    let failure: Failure
    let cause: Cause

    init(_ failure: Failure, _ cause: Cause = .request) {
        self.failure = failure
        self.cause = cause
    }
}

/// A credential whose verification failed, for the debug log.
struct FailedCredential {
    let form: CredentialForm
    /// Where it is in the head.
    let range: ByteRange
    let route: Int
}

/// A credential to verify.
final class VerificationRequest {
    let form: CredentialForm
    let credential: Credential
    let target: Verifier.Target

    init(form: CredentialForm, credential: Credential, target: Verifier.Target) {
        self.form = form
        self.credential = credential
        self.target = target
    }
}
