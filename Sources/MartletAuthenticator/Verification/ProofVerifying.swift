package import MartletProvider

/// The proof of a request with a credential that is bound to a key.
package struct PresentedProof: Sendable {
    /// The values of the request's `DPoP` fields.
    package let proofs: [[UInt8]]
    package let method: String
    /// `http` or `https`, as the client sees it.
    package let scheme: String
    /// The host as the client sees it, with its port.
    package let authority: String
    /// As the client sent it, without the query.
    package let path: String
    /// The credential, whose hash the proof must have.
    package let token: Credential

    package init(
        proofs: [[UInt8]], method: String, scheme: String, authority: String, path: String, token: Credential
    ) {
        self.proofs = proofs
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.token = token
    }
}

/// Verifies proofs of possession, and marks each as used.
package protocol ProofVerifying: Sendable {
    /// Verifies a proof.
    /// - Parameters:
    ///   - thumbprint: of the key that the credential is bound to.
    ///   - subject: whose credential it is; the proofs of each have a share of the store.
    /// - Throws: `rejected` for a proof that is not valid or was used before, `unavailable` if it cannot be marked.
    func verify(
        _ proof: PresentedProof, boundTo thumbprint: String, of subject: String, in context: AuthenticationContext
    ) async throws(AuthenticationError)
}
