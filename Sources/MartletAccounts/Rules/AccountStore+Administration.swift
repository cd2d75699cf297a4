package import MartletCore
internal import MartletJSON

/// The administration of accounts.
extension AccountStore {
    /// Finds an account; `nil` if there is none.
    package func account(_ subject: String) async throws(AccountError) -> AccountRecord? {
        guard TextRules.isKey(subject) else { return nil }
        return try await engine.rows(Query(.account, .text(subject)), AccountStore.account).first
    }

    /// Lists accounts by subject.
    /// - Parameters:
    ///   - start: the `next` of the page before; empty for the first page.
    ///   - filter: every criterion has an index, so that the size of the store does not matter.
    ///   - limit: the maximum number of accounts of the page.
    package func accounts(
        from start: String, _ filter: AccountFilter, limit: Int
    ) async throws(AccountError) -> AccountListPage {
        let limit = max(limit, 1)
        guard let query = AccountStore.list(from: start, filter, limit: limit) else {
            return AccountListPage(accounts: [], next: nil)
        }
        let accounts = try await engine.rows(query, AccountStore.account)
        return AccountListPage(accounts: accounts, next: accounts.count < limit ? nil : accounts.last?.subject)
    }

    /// The query of a page; `nil` if no account can match.
    private static func list(from start: String, _ filter: AccountFilter, limit: Int) -> Query? {
        let limit = Query.Value.integer(Int64(clamping: limit))
        guard !start.utf8.contains(0) else { return nil }
        guard let claim = filter.claim else {
            return Query(filter.onlyDisabled ? .disabledAccounts : .accounts, .text(start), limit)
        }
        guard TextRules.isKey(claim.name), !claim.value.utf8.contains(0) else { return nil }
        return Query(
            filter.onlyDisabled ? .disabledAccountsWithClaim : .accountsWithClaim, .text(start), limit,
            .text(claim.name), .text(claim.value))
    }

    /// Disables an account, or enables it with `nil`; one that is disabled already stays so since then.
    ///
    /// - Parameter headStart: how long the caller has to do the jobs before any other process does, in milliseconds.
    /// - Returns: what makes running gateways apply it.
    /// - Throws: `notFound`, `unavailable`.
    @discardableResult
    package func setDisabled(
        account subject: String, at instant: UnixTime?, headStart: Int64 = LifeRules.headStart
    ) async throws(AccountError) -> [AccountJob] {
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        let query =
            instant.map { Query(.disableAccount, .text(subject), .integer($0.seconds)) }
            ?? Query(.enableAccount, .text(subject))
        let now = clock.unixMilliseconds
        return try await engine.transact(
            .run([query]) { results throws(AccountError) in
                guard !results[0].isEmpty else { throw .unknownAccount }
                var changes = JobQueries()
                changes.add(.publishClaims, subject, "", [:], dueAt: now &+ headStart, at: now)
                return changes.committed { $0 }
            })
    }

    private static func account(_ row: Row) throws(AccountError) -> AccountRecord {
        let claims = try row.layers(4, 5, 9)
        return AccountRecord(
            subject: try row.text(0), createdAt: try row.time(1), disabledAt: try row.optionalTime(2),
            storedClaims: try row.object(3), claims: claims.merged, profile: claims.profile,
            deletion: try deletion(row))
    }

    private static func deletion(_ row: Row) throws(AccountError) -> AccountRecord.Deletion? {
        guard let due = try row.optionalInteger(6) else { return nil }
        return AccountRecord.Deletion(
            dueAt: UnixTime(seconds: due / 1000), reason: try row.optionalText(7) ?? "",
            deletedAt: try row.optionalTime(8))
    }
}
