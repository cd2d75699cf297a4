package import MartletCore
internal import MartletEvents
internal import MartletJSON

/// One-time links.
///
/// Only digests of the tokens are stored. A request does the same for every address: it counts, stores a link and
/// records an event, of which what must not remain is removed in the same transaction.
extension AccountStore {
    /// Stores a link, and records the event `mail.requested` if a mail is due.
    package func request(
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

    /// The provider of a link that is valid; `nil` if there is none. The link stays valid.
    package func linkProvider(
        of digest: String, for purpose: PasswordLinkPurpose, at now: UnixTime
    ) async throws(AccountError) -> String? {
        guard TextRules.isKey(digest) else { return nil }
        let query = Query(LinkStatement.find, .text(digest), .integer(purpose.rawValue), .integer(now.seconds))
        return try await engine.rows(query) { row throws(AccountError) in try row.text(0) }.first
    }

    /// Consumes a registration's link and adds its user.
    /// - Parameters:
    ///   - hash: that of the password which comes with the proof.
    ///   - providers: those whose users have the name, by their names in `providers:`.
    /// - Returns: `nil` if the link is not valid, or there is such a user already.
    package func register(
        with digest: String, password hash: String, at providers: [String], now: UnixTime
    ) async throws(AccountError) -> AddressProof? {
        try await prove(ProofRules.Claim(digest, .registration, hash: hash, at: providers, now: now))
    }

    /// Consumes a reset's link and sets the user's hash, unless the password was changed since the link was requested.
    /// - Parameter providers: those whose users have the name, by their names in `providers:`.
    /// - Returns: `nil` if the link is not valid.
    package func reset(
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
