package import MartletCore
package import MartletProvider
package import MartletResponder

/// The proof of a client's key that a request of the endpoints presents (RFC 9449 §4).
package struct KeyProof: Sendable {
    /// The values of the request's `DPoP` fields.
    package let proofs: [[UInt8]]
    package let method: String
    /// As the client sees it; `nil` if the request has no proof.
    package let url: ClientURL?
    /// The access token, whose hash the proof must have; `nil` where tokens are issued (RFC 9449 §5).
    package let accessToken: [UInt8]?

    package init(proofs: [[UInt8]], method: String, url: ClientURL?, accessToken: [UInt8]?) {
        self.proofs = proofs
        self.method = method
        self.url = url
        self.accessToken = accessToken
    }

    init(_ request: LocalRequest, accessToken: [UInt8]?) {
        self.init(
            proofs: request.values(of: "dpop").map { Array($0.utf8) }, method: request.method,
            url: request.clientURL, accessToken: accessToken)
    }

    /// Whether a request has a proof, valid or not.
    static func isPresented(by request: LocalRequest) -> Bool { !request.values(of: "dpop").isEmpty }
}

/// Verifies proofs of clients' keys, and marks each as used.
package protocol KeyProofVerifying: Sendable {
    /// Verifies a proof; one that does not hold is not marked.
    /// - Parameters:
    ///   - thumbprint: of the key that it has to be of; `nil` for any key.
    ///   - owner: who presents it.
    /// - Returns: the thumbprint of the key.
    /// - Throws: `rejected` for a proof that is not valid or was used before, `unavailable` if it cannot be marked.
    func verify(
        _ proof: KeyProof, by thumbprint: String?, for owner: WorkOwner, at now: UnixTime
    ) async throws(AuthenticationError) -> String
}
