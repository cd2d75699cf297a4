internal import MartletAuthenticator
internal import MartletCore
internal import MartletJOSE
internal import MartletProvider
internal import MartletResponder
internal import MartletSignIn

/// Verifies DPoP proofs (RFC 9449 §4.3), and marks each in the store that instances share, so that it is used once.
struct DPoPVerifier: ProofVerifying, KeyProofVerifying {
    /// How long after its creation a proof is accepted, and how far ahead a client's clock may be, in seconds.
    static let maximumAge: Int64 = 60
    static let maximumSkew: Int64 = 5

    private let store: any PartitionedStoring
    private let keyPrefix: String
    private let policy = DPoPPolicy(
        algorithms: [.es256, .es384, .es512, .edDSA, .ps256], maximumAge: maximumAge, maximumSkew: maximumSkew)

    /// - Parameter keyPrefix: of every key in the store.
    init(store: any PartitionedStoring, keyPrefix: String) {
        self.store = store
        self.keyPrefix = keyPrefix
    }

    func verify(
        _ proof: PresentedProof, boundTo thumbprint: String, of subject: String, in context: AuthenticationContext
    ) async throws(AuthenticationError) {
        let url = ClientURL(scheme: proof.scheme, authority: proof.authority, path: proof.path)
        _ = try await verify(
            KeyProof(proofs: proof.proofs, method: proof.method, url: url, accessToken: proof.token.withBytes { $0 }),
            by: thumbprint, for: WorkOwner(named: subject), in: context)
    }

    func verify(
        _ proof: KeyProof, by thumbprint: String?, for owner: WorkOwner, at now: UnixTime
    ) async throws(AuthenticationError) -> String {
        try await verify(proof, by: thumbprint, for: owner, in: AuthenticationContext(now: now, deadline: .never))
    }

    private func verify(
        _ proof: KeyProof, by thumbprint: String?, for owner: WorkOwner, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> String {
        let confirmation: DPoPConfirmation
        do throws(DPoPError) { confirmation = try confirm(proof, at: context.now) } catch {
            throw .rejected(error.code, cause: error)
        }
        if let thumbprint, !confirmation.thumbprint.hasSameBytes(as: thumbprint) { throw .rejected("dpop.wrong_key") }
        try await mark(confirmation, for: owner, in: context)
        return confirmation.thumbprint
    }

    /// Marks a proof as used.
    /// - Throws: `rejected` for one that was used before, `unavailable` without the store, `throttled` for one of too many.
    private func mark(
        _ confirmation: DPoPConfirmation, for owner: WorkOwner, in context: AuthenticationContext
    ) async throws(AuthenticationError) {
        // Longer than any instance accepts the proof.
        let lifetime = confirmation.acceptedUntil.seconds.subtractingReportingOverflow(context.now.seconds)
        let seconds = lifetime.overflow ? 0 : max(lifetime.partialValue, 0)
        let isFirst: Bool
        do throws(StoreError) {
            isFirst = try await context.marksUse(
                of: "\(keyPrefix)dpop:\(confirmation.replayKey)", in: store.partition(.proofs, for: owner),
                lifetime: .seconds(min(seconds, 2 * Self.maximumAge) + 2 * Self.maximumSkew))
        } catch {
            throw .store(error, as: "dpop.store_unavailable")
        }
        guard isFirst else { throw .rejected("dpop.replayed") }
    }

    private func confirm(_ proof: KeyProof, at now: UnixTime) throws(DPoPError) -> DPoPConfirmation {
        let text = try DPoPProof.only(of: proof.proofs)
        let parsed = try DPoPProof(text, policy: policy)
        guard let url = proof.url,
            let target = DPoPTarget(
                scheme: Array(url.scheme.utf8), authority: Array(url.authority.utf8), path: Array(url.path.utf8))
        else { throw DPoPError(.dpopURLMismatch, "the request has no URL that a proof could name") }
        return try parsed.confirmation(
            for: DPoPRequest(method: proof.method, target: target, accessToken: proof.accessToken),
            policy: policy, now: now)
    }
}
