internal import MartletJSON
internal import MartletProvider

extension AccountStore {
    func claims(of subject: String) async throws(AccountError) -> VersionedClaims {
        guard TextRules.isKey(subject) else { return .none }
        return try await engine.read(
            ReadOperation(queries: [Query(.claims, .text(subject))]) { results throws(AccountError) in
                try AccountStore.claims(results[0])
            })
    }

    func changeClaims(of subject: String, by patch: ClaimPatch) async throws(AccountError) -> Bool {
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        return try await engine.transact(
            .run([Query(.lockClaims, .text(subject))]) { results throws(AccountError) in
                guard let row = results[0].first else { throw .unknownAccount }
                let stored = try ClaimLayers(operators: try row.optionalText(0), rules: try row.optionalText(1))
                var changed = stored
                try changed.change(by: patch)
                guard changed != stored else { return .end(false) }
                return .commit(AccountStore.store(changed, of: subject)) { _ in true }
            })
    }

    func changeClaims(
        of subject: String, provider: String, by patch: ClaimPatch
    ) async throws(AccountError) -> Bool {
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        guard TextRules.isKey(provider) else { throw .notLinked }
        let queries = [
            Query(.lockClaims, .text(subject)), Query(.lockIdentityClaims, .text(subject), .text(provider)),
        ]
        return try await engine.transact(
            .run(queries) { results throws(AccountError) in
                guard !results[0].isEmpty else { throw .unknownAccount }
                guard let row = results[1].first else { throw .notLinked }
                let stored = try row.optionalText(1).map(StoredClaims.read) ?? [:]
                let changed = patch.applied(to: stored)
                guard changed != stored else { return .end(false) }
                try ClaimRules.check(changed)
                let update = Query(
                    .setIdentityClaims, .text(try row.text(0)), .text(StoredClaims.write(changed)))
                return .commit([update, Query(.countClaimsChange, .text(subject))]) { _ in true }
            })
    }

    /// The queries that store an account's claims and their index.
    static func store(_ layers: ClaimLayers, of subject: String) -> [Query] {
        [
            Query(
                .setClaims, .text(subject), .text(StoredClaims.write(layers.operators)),
                .text(StoredClaims.write(layers.rules))),
            Query(.removeClaimValues, .text(subject)),
        ]
            + layers.indexEntries.map {
                Query(.addClaimValue, .text(subject), .text($0.name), .text($0.value))
            }
    }

    /// Decodes the rows of `claims`: the account's columns, and the provider and claims of an identity, if it has any.
    private static func claims(_ rows: [Row]) throws(AccountError) -> VersionedClaims {
        guard let first = rows.first else { return .none }
        var claims = AccountClaims(
            account: try ClaimLayers(operators: try first.optionalText(1), rules: try first.optionalText(2)).merged)
        for row in rows {
            guard let provider = try row.optionalText(3), let text = try row.optionalText(4) else { continue }
            claims.identities[provider] = try StoredClaims.read(text)
        }
        return VersionedClaims(version: try first.integer(0), claims: claims)
    }
}
