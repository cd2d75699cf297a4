/// What an exchange records about its credential.
struct CredentialState {
    /// Index of the provider that verified it, into the snapshot's providers, or −1.
    var provider: Int32 = -1
    /// Index of its token's cached decision, or −1.
    var decision: Int32 = -1
    /// The ID that revocations name; 0: none.
    var revocationID: UInt64 = 0
    /// When it expires, in milliseconds of Unix time.
    var end = Int64.max
    /// How long after its credential the exchange ends, in nanoseconds.
    var expiryGrace: Int64 = 0
    /// When it was last submitted for verification.
    var verificationStarted: Int64 = 0
    /// How often it was submitted for verification.
    var verificationAttempts: Int32 = 0
    /// An error response offers Basic too.
    var offersBasic = false
    /// A long exchange, whose token is retained.
    var retainsToken = false

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
