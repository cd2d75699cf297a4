internal import MartletCore
internal import MartletEvents
internal import MartletJSON
internal import MartletProvider

/// The use of a mailed link, which proves that a user has the mailbox that is the user's name, as transaction steps.
///
/// Before the first proof, any client may have made the user of a name. So it takes from the user's accounts whatever was
/// added to them: identities, API keys, and what logins and the user have stored. Sessions end with every proof.
struct ProofRules: Sendable {
    /// How long the process that made a proof has to end the sessions before any other does, in milliseconds.
    private static let headStart: Int64 = 2_000
    /// How long a notice of what was taken is worth sending, in seconds.
    private static let noticeLifetime: Int64 = 86_400

    /// A link that is presented.
    struct Claim: Sendable {
        let digest: String
        let purpose: PasswordLinkPurpose
        /// That of the password which is set.
        let hash: String
        /// The providers whose users have the name.
        let providers: [String]
        let now: UnixTime

        init(_ digest: String, _ purpose: PasswordLinkPurpose, hash: String, at providers: [String], now: UnixTime) {
            self.digest = digest
            self.purpose = purpose
            self.hash = hash
            self.providers = providers
            self.now = now
        }
    }

    /// What a proof finds.
    private struct Proven: Sendable {
        let claim: Claim
        let address: String
        let isFirst: Bool
        /// Of the user.
        let claims: JSONObject
        /// The subjects of the accounts.
        let accounts: [String]
        /// What ends the link and, for a user who exists, sets the password.
        var changes: [Query]
    }

    /// What an account has besides the identity of the proved user.
    private struct Holdings: Sendable {
        let account: String
        var identities: [ListedIdentity] = []
        var keys: [(provider: String, id: String)] = []
        let layers: ClaimLayers

        var isEmpty: Bool { identities.isEmpty && keys.isEmpty }
    }

    let dialect: Dialect
    let recorder: EventRecorder
    /// Milliseconds since 1970.
    let time: Int64

    func prove(_ claim: Claim) -> TransactionStep<AddressProof?> {
        let take = Query(
            LinkStatement.take, .text(claim.digest), .integer(claim.purpose.rawValue), .integer(claim.now.seconds))
        return .run([take]) { results throws(AccountError) in
            guard let row = results[0].first else { return .end(nil) }
            return prove(claim, address: try row.text(0), hash: try row.text(1), claims: try row.text(2))
        }
    }

    /// - Parameters:
    ///   - hash: of a reset, the user's when the link was requested.
    ///   - claims: of a registration, those of the new user.
    private func prove(
        _ claim: Claim, address: String, hash: String, claims: String
    ) -> TransactionStep<AddressProof?> {
        let locks = locks(on: claim.providers.map { "\($0)\n\(address)" })
        let owners = claim.providers.map { Query(.lockSubject, .text($0), .text(address)) }
        return .run(locks + [Query(.lockUser, .text(address))] + owners) { results throws(AccountError) in
            let user = try results[locks.count].first.map(AccountStore.record)
            var accounts: [String] = []
            for index in claim.providers.indices {
                guard let row = results[locks.count + 1 + index].first else { continue }
                let account = try BoundSubject(row).account
                if !accounts.contains(where: { $0.hasSameBytes(as: account) }) { accounts.append(account) }
            }
            // All links of the address for the purpose end with one.
            let spend = Query(LinkStatement.spend, .text(address), .integer(claim.purpose.rawValue))
            guard claim.purpose == .reset else {
                guard user == nil else { return .commit([spend]) { _ in nil } }
                let new = Proven(
                    claim: claim, address: address, isFirst: true, claims: try StoredClaims.read(claims),
                    accounts: accounts, changes: [spend])
                return register(new, claims)
            }
            guard let user, user.hash.hasSameBytes(as: hash) else { return .commit([spend]) { _ in nil } }
            var known = user.claims
            known["email"] = .string(address)
            known["email_verified"] = true
            let change = Query(
                .proveUser, .text(address), .text(claim.hash), .integer(claim.now.seconds),
                .text(StoredClaims.write(known)))
            return follow(
                Proven(
                    claim: claim, address: address, isFirst: user.provedAt == nil, claims: known, accounts: accounts,
                    changes: [spend, change]))
        }
    }

    private func register(_ proven: Proven, _ claims: String) -> TransactionStep<AddressProof?> {
        let (address, now) = (Query.Value.text(proven.address), Query.Value.integer(proven.claim.now.seconds))
        let add = Query(.addUser, address, address, .text(proven.claim.hash), .integer(0), now, .text(claims), now)
        return .run([add]) { results throws(AccountError) in
            // Another client was faster.
            guard !results[0].isEmpty else { return .commit(proven.changes) { _ in nil } }
            return follow(proven)
        }
    }

    // MARK: What follows

    private func follow(_ proven: Proven) -> TransactionStep<AddressProof?> {
        guard proven.isFirst, !proven.accounts.isEmpty else {
            return finish(proven, proven.accounts.map { AddressProof.Owned(subject: $0, identities: [], keys: []) })
        }
        let queries = proven.accounts.flatMap { account -> [Query] in
            [
                Query(.lockIdentities, .text(account)), Query(.lockClaims, .text(account)),
                Query(ProofStatement.keys, .text(account)),
            ]
        }
        return .run(queries) { results throws(AccountError) in
            var all: [Holdings] = []
            for (index, account) in proven.accounts.enumerated() {
                all.append(try holdings(of: account, proven, results, at: index * 3))
            }
            // Before keys change: see ``KeyStatement``.
            let providers = Set(all.flatMap { $0.keys.map(\.provider) })
            let found = all
            return .run(locks(on: providers.map { "api keys\n\($0)" })) { _ throws(AccountError) in
                try reclaim(proven, found)
            }
        }
    }

    private func holdings(
        of account: String, _ proven: Proven, _ results: QueryResults, at index: Int
    ) throws(AccountError) -> Holdings {
        guard let row = results[index + 1].first else { throw .corrupt }
        var holdings = Holdings(account: account, layers: try row.layers(0, 1, 2))
        for listed in try ListedIdentity.read(results[index]) {
            let isOwn =
                proven.claim.providers.contains { $0.hasSameBytes(as: listed.identity.provider) }
                && listed.identity.subjects.contains { $0.hasSameBytes(as: proven.address) }
            if !isOwn { holdings.identities.append(listed) }
        }
        for row in results[index + 2] { holdings.keys.append((try row.text(0), try row.text(1))) }
        return holdings
    }

    private func reclaim(_ proven: Proven, _ all: [Holdings]) throws(AccountError) -> TransactionStep<AddressProof?> {
        var (proven, owned) = (proven, [AddressProof.Owned]())
        for holdings in all {
            proven.changes += try queries(of: holdings, proven)
            owned.append(
                AddressProof.Owned(
                    subject: holdings.account, identities: holdings.identities.map(\.identity.provider),
                    keys: holdings.keys.map(\.id)))
        }
        let taken = (owned.flatMap(\.identities), owned.flatMap(\.keys))
        if !taken.0.isEmpty || !taken.1.isEmpty {
            let notice = MailRequest(
                to: proven.address, .accountReclaimed, locale: proven.claims["locale"]?.string,
                expiresAt: proven.claim.now.advanced(bySeconds: Self.noticeLifetime), removed: taken.0 + taken.1)
            proven.changes += recorder.queries(
                .mailRequested, of: proven.address, try EventRecorder.Stamp(at: time), data: notice.data)
        }
        return finish(proven, owned)
    }

    /// What takes the holdings of one account.
    private func queries(of holdings: Holdings, _ proven: Proven) throws(AccountError) -> [Query] {
        let account = Query.Value.text(holdings.account)
        var queries = [Query(ProofStatement.reclaim, account, .integer(time))]
        // What operators have set stays.
        queries += AccountStore.store(ClaimLayers(operators: holdings.layers.operators), of: holdings.account)
        for listed in holdings.identities {
            queries += listed.identity.subjects.map {
                Query(ProofStatement.noteDeparture, .text(listed.identity.provider), .text($0), .integer(time))
            }
            queries.append(Query(.removeIdentity, .text(listed.id)))
            queries += recorder.queries(
                .identityUnlinked, of: holdings.account, try EventRecorder.Stamp(at: time),
                data: ["provider": .string(listed.identity.provider)])
        }
        for key in holdings.keys {
            queries.append(
                Query(KeyStatement.revoke, .text(key.provider), .text(key.id), .integer(proven.claim.now.seconds)))
        }
        let data: JSONObject = [
            "identities": .array(holdings.identities.map { .string($0.identity.provider) }),
            "keys": .array(holdings.keys.map { .string($0.id) }),
        ]
        return queries
            + recorder.queries(.accountReclaimed, of: holdings.account, try EventRecorder.Stamp(at: time), data: data)
    }

    /// The last queries: the sessions of the accounts end, also if this process does not live to end them.
    private func finish(_ proven: Proven, _ accounts: [AddressProof.Owned]) -> TransactionStep<AddressProof?> {
        var changes = JobQueries(proven.changes)
        for account in accounts {
            changes.add(
                .endSessions, account.subject, "", ["reason": "password_changed"], dueAt: time &+ Self.headStart,
                at: time)
        }
        return changes.committed { jobs in
            AddressProof(user: proven.address, isFirst: proven.isFirst, accounts: accounts, jobs: jobs)
        }
    }

    /// Advisory locks, sorted to avoid deadlocks.
    private func locks(on texts: [String]) -> [Query] {
        guard dialect == .postgresql else { return [] }
        return texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { Query(.lock, .text($0)) }
    }
}
