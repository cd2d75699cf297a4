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
        let receipt = try await engine.transact(linkRequest(request, at: now, stamp))
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

    func register(with digest: String, at now: UnixTime) async throws(AccountError) -> String? {
        try await consume(digest, for: .registration, at: now) { link in
            Query(
                .addUser, .text(link.address), .text(link.address), .text(link.hash), .integer(0),
                .integer(now.seconds), .text(link.claims))
        }
    }

    func reset(with digest: String, to hash: String, at now: UnixTime) async throws(AccountError) -> String? {
        guard TextRules.isKey(hash) else { throw .textInvalid }
        return try await consume(digest, for: .reset, at: now) { link in
            Query(
                .replaceHash, .text(link.address), .text(link.hash), .text(hash), .integer(now.seconds))
        }
    }
}

// MARK: - Transactions

extension AccountStore {
    /// A link that is being consumed.
    private struct TakenLink: Sendable {
        let address: String
        /// The hash of the new user or, of a reset, the one to be replaced.
        let hash: String
        let claims: String
    }

    /// The steps of a request, the same for every address.
    ///
    /// A link for an address without a user is stored as well; its token is in no mail, and a link of a reset without
    /// a hash replaces none.
    private func linkRequest(
        _ request: PasswordLinkRequest, at now: UnixTime, _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<PasswordLinkReceipt> {
        let start = now.advanced(bySeconds: -PasswordLinkLimits.window.wholeSeconds)
        let address = Query.Value.text(request.address)
        let lock = engine.dialect == .postgresql ? [Query(.lock, .text("link\n\(request.address)"))] : []
        let limit = Int64(PasswordLinkLimits.mailsPerAddress)
        let queries = [
            Query(.findUser, address), Query(.link(.purge), .integer(start.seconds)),
            Query(.link(.recent), address, .integer(start.seconds), .integer(limit)),
        ]
        return .run(lock + queries) { results throws(AccountError) in
            let recent = results[lock.count + 2]
            if Int64(recent.count) >= limit, let oldest = try recent.last?.integer(0) {
                let wait = max(oldest &- start.seconds, 1)
                return .end(.throttled(retryAfter: .seconds(wait)))
            }
            let row = results[lock.count].first
            // A disabled user gets no link: looks like no user.
            let user = try row.flatMap { (row) throws(AccountError) in try row.integer(3) == 0 ? row : nil }
            return .commit(
                try linkChanges(request, userHash: user?.text(2), isTaken: row != nil, at: now, stamp)
            ) { _ in .accepted }
        }
    }

    /// - Parameters:
    ///   - userHash: the hash of the active user with the address; `nil` if there is none.
    ///   - isTaken: whether there is a user, disabled ones included.
    private func linkChanges(
        _ request: PasswordLinkRequest, userHash: String?, isTaken: Bool, at now: UnixTime,
        _ stamp: EventRecorder.Stamp
    ) -> [Query] {
        let claims = request.newUser.map { StoredClaims.write($0.claims) } ?? ""
        let expiry = now.advanced(bySeconds: PasswordLinkLimits.lifetime.wholeSeconds)
        let isUser = request.purpose == .reset ? userHash != nil : isTaken
        let data = isUser ? request.mails.user : request.mails.other
        let link = Query(
            .link(.add), .text(request.digest), .integer(request.purpose.rawValue), .text(request.provider),
            .text(request.address), .text(request.newUser?.hash ?? userHash ?? ""), .text(claims),
            .integer(now.seconds), .integer(expiry.seconds))
        let event = recorder.queries(
            .mailRequested, of: request.address, stamp, data: data ?? request.mails.user)
        return [link, Query(.link(.trim), .integer(Int64(PasswordLinkLimits.stored)))] + event
            + [Query(.link(.dropEvent), .text(stamp.id), .integer(data == nil ? 1 : 0))]
    }

    /// Ends a link and makes its change in one transaction; the other links of the address for the same purpose end
    /// with it.
    private func consume(
        _ digest: String, for purpose: PasswordLinkPurpose, at now: UnixTime,
        _ change: @escaping @Sendable (TakenLink) -> Query
    ) async throws(AccountError) -> String? {
        guard TextRules.isKey(digest) else { return nil }
        let take = Query(.link(.take), .text(digest), .integer(purpose.rawValue), .integer(now.seconds))
        return try await engine.transact(
            .run([take]) { results throws(AccountError) in
                guard let row = results[0].first else { return .end(nil) }
                let link = TakenLink(address: try row.text(0), hash: try row.text(1), claims: try row.text(2))
                let spend = Query(.link(.spend), .text(link.address), .integer(purpose.rawValue))
                return .commit([change(link), spend]) { results in results[0].isEmpty ? nil : link.address }
            })
    }
}
