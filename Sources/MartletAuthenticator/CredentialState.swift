/// What is known of the proof that a credential is bound to.
@usableFromInline
package enum ProofState: UInt8, Sendable {
    /// None was checked.
    case none
    /// It does not hold, or could not be checked.
    case failed
    /// It was checked for this request.
    case held
}

/// What an exchange records about its credential.
@usableFromInline
package struct CredentialState: Sendable {
    /// Index of the provider that verified it, into the configuration's providers, or −1.
    @usableFromInline package var provider: Int32
    /// Index of its token's cached decision, or −1.
    @usableFromInline package var decision: Int32
    /// The ID that revocations name; 0: none.
    @usableFromInline package var revocationID: UInt64
    /// When it expires, in milliseconds of Unix time.
    @usableFromInline package var end: Int64
    /// How long after its credential the exchange ends, in nanoseconds.
    @usableFromInline package var expiryGrace: Int64
    /// When it was last submitted for verification.
    @usableFromInline var verificationStarted: Int64
    /// The hash of its caller's subject, by which limits count; 0: no caller.
    @usableFromInline package var subject: Int
    /// How often it was submitted for verification.
    @usableFromInline var verificationAttempts: Int32
    /// An error response offers Basic too.
    @usableFromInline package var offersBasic: Bool
    /// A long exchange, whose token is retained.
    @usableFromInline package var retainsToken: Bool
    /// The request has one of the gateway's cookies, which the upstream does not get.
    @usableFromInline package var hasCookie: Bool
    /// The response sets or deletes one of them.
    @usableFromInline package var setsCookie: Bool
    /// What admitted the request is the session cookie.
    @usableFromInline package var isCookie: Bool
    /// The header that admitted the request, as an index into the configuration's header sources, or −1.
    @usableFromInline package var headerSource: Int16
    /// The request has a key of the gateway in a header that its route does not read: it does not pass as anonymous.
    @usableFromInline package var hasForeignKey: Bool
    /// The proof that the credential is bound to.
    @usableFromInline package var proof: ProofState

    // Every exchange begins with one. The values are here, not in the properties: those of properties are not inlined
    // into other modules.
    @inlinable @inline(__always)
    package init() {
        provider = -1
        decision = -1
        revocationID = 0
        end = .max
        expiryGrace = 0
        verificationStarted = 0
        subject = 0
        verificationAttempts = 0
        offersBasic = false
        retainsToken = false
        hasCookie = false
        setsCookie = false
        isCookie = false
        headerSource = -1
        hasForeignKey = false
        proof = .none
    }

    /// Records the result of checking the proof; a failure is still to be responded to.
    package mutating func concludeProof(_ result: VerificationResult?) {
        switch result {
        case .success: proof = .held
        case .failure: proof = .failed
        case nil: proof = .none
        }
    }

    /// Records whose credential it is.
    @inline(__always)
    mutating func identify(provider: Int32, subject: Int) {
        self.provider = provider
        self.subject = subject
    }

    /// Records which credential admitted the request.
    ///
    /// - Parameters:
    ///   - decision: index of its token's cached decision.
    ///   - grace: how long after its credential the exchange ends; negative where it may outlive it.
    @inline(__always)
    mutating func bind(to revocationID: UInt64, until end: Int64, decision: Int32, grace: Int64) {
        guard grace >= 0 else { return }
        self.revocationID = revocationID
        self.end = end
        self.decision = decision
        expiryGrace = grace
    }
}
