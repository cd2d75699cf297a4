package import MartletCore
package import MartletProvider
internal import MartletResponder

/// Credentials that are not cached: what has to be verified, and by what.
extension Authenticator {
    /// How long a verification may take, in nanoseconds.
    package static let verificationTimeout: Int64 = 10_000_000_000
    /// How often one request's credential is verified when reloads and removed keys overtake the results.
    static let verificationLimit = 4

    /// The outcome for a credential that has to be verified.
    mutating func requestVerification(
        _ location: CredentialLocation, _ value: [UInt8], at time: LoopTime, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        let (form, route) = (location.form, location.route)
        misses &+= 1
        credential.verificationAttempts &+= 1
        guard credential.verificationAttempts <= Authenticator.verificationLimit else {
            return Authenticator.overtaken()
        }
        guard let target = verificationTarget(form, value, route) else {
            return .rejected(Rejection(.credentialInvalid("auth.no_provider_claims_it")))
        }
        if case .header = form, target.isForeign(value) {
            return .rejected(Rejection(.credentialInvalid("auth.header_not_accepted")))
        }
        credential.verificationStarted = time.monotonic
        return .pending(VerificationRequest(location, credential: form.credential(value), target: target))
    }

    /// The outcome for a request whose results were overtaken too often.
    @inline(never)
    static func overtaken() -> AuthorizationOutcome {
        .rejected(Rejection(.authUnavailable("auth.verdict_overtaken")))
    }

    /// Queues a job for the loop's own verifier; `false` where threads have to verify it.
    package mutating func enqueue(_ job: Verifier.Job) -> Bool {
        defer { isIdle = inlineVerifier.isIdle }
        return inlineVerifier.enqueue(job)
    }

    /// Verifies some of the queued jobs: see ``InlineVerifier/run(by:others:)``.
    package mutating func verifyInline(
        by clock: Clock, others: (Verifier.Job, Identity?) -> Void
    ) -> [(job: Verifier.Job, result: VerificationResult)] {
        defer { isIdle = inlineVerifier.isIdle }
        return inlineVerifier.run(by: clock, others: others)
    }
}

extension Verifier.Target {
    /// Whether a header has one of the gateway's own tokens that its provider did not make: a session belongs into
    /// `Authorization`, and elsewhere it would be sent to another system.
    fileprivate func isForeign(_ value: [UInt8]) -> Bool {
        guard case .provider(let handle) = self else { return false }
        return unsafe value.withUnsafeBufferPointer { text in
            if let kind = unsafe OwnToken(prefixOf: text), handle.accepts.contains(.bearerPrefix(kind.prefix)) {
                return false
            }
            return unsafe OwnToken.appears(in: text)
        }
    }
}
