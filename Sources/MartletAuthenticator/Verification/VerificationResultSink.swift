/// Receives the results of verifications, on any thread.
package protocol VerificationResultSink: AnyObject, Sendable {
    /// Takes results that are available together; does not block.
    func receive(_ results: [FinishedVerification])
}

/// The result of a verification, for the exchange that waits for it.
package struct FinishedVerification: Sendable {
    package let exchange: ExchangeID
    /// The configuration and cache state that the result belongs to.
    package let epoch: Int
    package let result: VerificationResult
}
