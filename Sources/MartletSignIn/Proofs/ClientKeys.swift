internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Binds sessions to keys of their clients, and checks the proofs of those (RFC 9449).
struct ClientKeys: Sendable {
    let endpoints: SignInEndpoints

    private var setup: SignInSetup { endpoints.setup }

    /// The key that a new session is to be bound to; `nil` for a bearer's session.
    ///
    /// To be called before a credential is used, so that one is not consumed by a request that is rejected.
    /// - Throws: 401 for a proof that is missing or does not hold; 503.
    func newKey(of request: LocalRequest) async throws(Failure) -> String? {
        switch ProofRule(creatingBy: setup.configuration.dpop, isPresented: KeyProof.isPresented(by: request)) {
        case .ignored, .verifiedIfBound: return nil
        case .missing: throw .proofInvalid(.sessionProofMissing)
        case .verified: return try await provenKey(of: request)
        }
    }

    /// Refreshes a session with the proof that it needs; whoever lacks it changes nothing.
    func refresh(_ token: Secret, _ request: LocalRequest) async throws(Failure) -> IssuedTokens {
        let setting = setup.configuration.dpop
        let rule = ProofRule(refreshingBy: setting, isPresented: KeyProof.isPresented(by: request))
        let key = rule == .verified ? try await provenKey(of: request) : nil
        do throws(SessionError) {
            return try await refresh(token, provenBy: key, isRequired: setting == .required, request)
        } catch {
            guard rule == .verifiedIfBound, error.kind == .unproven else { throw .session(error) }
        }
        let owner = try await provenKey(of: request)
        return try await fromSessions(await refresh(token, provenBy: owner, isRequired: true, request))
    }

    private func refresh(
        _ token: Secret, provenBy key: String?, isRequired: Bool, _ request: LocalRequest
    ) async throws(SessionError) -> IssuedTokens {
        try await setup.sessions.refresh(
            token, provenBy: RefreshKey(thumbprint: key, isRequired: isRequired), from: request.address,
            reportingReuse: endpoints.ends.report(as: SessionEnds.refreshReuse, request))
    }

    /// Verifies a proof of any key, for a request without an access token.
    ///
    /// Anyone can make a key and proofs of it, and each that holds is marked in the store for 75 s. Two things
    /// bound how many there are: a network has a budget of them, which those that hold use up whatever follows, and the
    /// others fail the request, which counts against the budget of logins, codes or refreshes.
    private func provenKey(of request: LocalRequest) async throws(Failure) -> String {
        try await endpoints.withBudget(endpoints.budgets.proofs, request, countsSuccess: true, rejections: []) {
            () async throws(Failure) in
            try await verify(KeyProof(request, accessToken: nil), by: nil, for: request.owner)
        }
    }

    private func verify(
        _ proof: KeyProof, by thumbprint: String?, for owner: WorkOwner
    ) async throws(Failure) -> String {
        guard let verifier = setup.proofs else { throw .proofInvalid("auth.proof_not_supported") }
        do throws(AuthenticationError) {
            return try await verifier.verify(proof, by: thumbprint, for: owner, at: setup.clock.unixTime)
        } catch {
            throw error.disposition == .rejected ? .proofInvalid(error.code) : .authentication(error)
        }
    }

    /// Checks that the scheme fits a session's binding, as on routes, and the proof of its key.
    ///
    /// - Parameter isProven: whether the proof of this request was checked before; it holds once.
    /// - Throws: 401; 503 if the proof cannot be marked.
    func check(
        proofOf proven: VerifiedSession, _ token: PresentedToken, isProven: Bool, _ request: LocalRequest
    ) async throws(Failure) {
        let thumbprint = proven.principal.identity.binding?.keyThumbprint
        guard token.isDPoP == (thumbprint != nil) else {
            throw .proofInvalid(token.isDPoP ? "auth.token_not_bound" : "auth.bound_token")
        }
        guard let thumbprint, !isProven else { return }
        _ = try await verify(
            KeyProof(request, accessToken: token.bytes), by: thumbprint,
            for: WorkOwner(named: proven.principal.subject))
    }
}

/// The access token in `Authorization`.
struct PresentedToken: Sendable {
    let bytes: [UInt8]
    /// Whether its scheme is `DPoP`, and not `Bearer`.
    let isDPoP: Bool

    /// - Throws: 401 without exactly one token.
    init(of request: LocalRequest) throws(Failure) {
        let values = request.values(of: "authorization")
        guard let value = values.first else { throw .credentialMissing }
        let bytes = Array(value.utf8)
        guard values.count == 1 else { throw .credentialInvalid(.signInBadAuthorization) }
        let range: ByteRange
        switch AuthorizationValue(bytes.span, ByteRange(from: 0, to: bytes.count)) {
        case .bearer(let token): (range, isDPoP) = (token, false)
        case .dpop(let token): (range, isDPoP) = (token, true)
        case .basic, .other, .malformed: throw .credentialInvalid(.signInBadAuthorization)
        }
        self.bytes = Array(bytes[range.start..<range.end])
    }
}

extension Identity {
    /// The same identity for a session that is bound to a key; unchanged without one.
    func bound(to thumbprint: String?) -> Identity {
        guard let thumbprint else { return self }
        return changed(binding: CredentialBinding(keyThumbprint: thumbprint))
    }
}
