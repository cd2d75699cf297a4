internal import MartletCore
internal import MartletEvents
internal import MartletJSON

extension AccountStore: PasswordLinkStoring {
    func request(
        _ request: PasswordLinkRequest, at now: UnixTime
    ) async throws(AccountError) -> PasswordLinkReceipt {
        guard TextRules.isKey(request.address), TextRules.isKey(request.provider), TextRules.isKey(request.digest)
        else { throw .textInvalid }
        let stamp = try newStamp()
        let rules = LinkRules(dialect: engine.dialect, recorder: recorder)
        let receipt = try await engine.transact(rules.request(request, at: now, stamp))
        observers.signal()
        return receipt
    }

    func linkProvider(
        of digest: String, for purpose: PasswordLinkPurpose, at now: UnixTime
    ) async throws(AccountError) -> String? {
        guard TextRules.isKey(digest) else { return nil }
        let query = Query(.link(.find), .text(digest), .integer(purpose.rawValue), .integer(now.seconds))
        return try await engine.read(
            ReadOperation(queries: [query]) { results throws(AccountError) in try results[0].first?.text(0) })
    }

    func register(
        with digest: String, password hash: String, at providers: [String], now: UnixTime
    ) async throws(AccountError) -> AddressProof? {
        try await prove(ProofRules.Claim(digest, .registration, hash: hash, at: providers, now: now))
    }

    func reset(
        with digest: String, to hash: String, at providers: [String], now: UnixTime
    ) async throws(AccountError) -> AddressProof? {
        try await prove(ProofRules.Claim(digest, .reset, hash: hash, at: providers, now: now))
    }

    private func prove(_ claim: ProofRules.Claim) async throws(AccountError) -> AddressProof? {
        guard TextRules.isKey(claim.digest) else { return nil }
        guard TextRules.isKey(claim.hash), claim.providers.allSatisfy(TextRules.isKey) else { throw .textInvalid }
        let rules = ProofRules(dialect: engine.dialect, recorder: recorder, time: clock.unixMilliseconds)
        let proof = try await engine.transact(rules.prove(claim))
        if proof != nil { observers.signal() }
        return proof
    }
}
