package import MartletJSON
package import MartletProvider

extension AccountStore {
    /// The claims of an account and its identities; ``VersionedClaims/none`` without such an account.
    package func claims(of subject: String) async throws(AccountError) -> VersionedClaims {
        guard TextRules.isKey(subject) else { return .none }
        return try await engine.read(
            ReadOperation(queries: [Query(.claims, .text(subject))]) { results throws(AccountError) in
                try AccountStore.claims(results[0])
            })
    }

    /// Changes the claims of an account, which win over those of its providers.
    ///
    /// Stored only: `ClaimPublisher` makes running gateways apply them.
    /// - Returns: whether anything changed.
    /// - Throws: `notFound`, `invalidClaims`, `unavailable`.
    @discardableResult
    package func changeClaims(of subject: String, by patch: ClaimPatch) async throws(AccountError) -> Bool {
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        return try await engine.transact(
            .run([Query(.lockClaims, .text(subject))]) { results throws(AccountError) in
                guard let row = results[0].first else { throw .unknownAccount }
                let stored = try row.layers(0, 1, 2)
                var changed = stored
                try changed.change(by: patch)
                guard changed != stored else { return .end(false) }
                return .commit(AccountStore.store(changed, of: subject)) { _ in true }
            })
    }

    /// What a user says of themselves: the claims `name` and `locale`, each if there is one.
    package func profile(of subject: String) async throws(AccountError) -> JSONObject {
        guard TextRules.isKey(subject) else { return [:] }
        return try await engine.read(
            ReadOperation(queries: [Query(.profile, .text(subject))]) { results throws(AccountError) in
                try results[0].first?.optionalText(0).map(StoredClaims.read) ?? [:]
            })
    }

    /// Changes what a user says of themselves; claims of operators and rules win over it.
    ///
    /// Stored only: `ClaimPublisher` makes running gateways apply it.
    /// - Returns: the profile after the change.
    /// - Throws: `notFound`, also for an account that is deleted, `unavailable`.
    package func changeProfile(of subject: String, by patch: ProfilePatch) async throws(AccountError) -> JSONObject {
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        return try await engine.transact(
            .run([Query(.lockClaims, .text(subject))]) { results throws(AccountError) in
                // Nothing personal is stored again for an account that was deleted meanwhile.
                guard let row = results[0].first, try row.optionalInteger(3) == nil else { throw .unknownAccount }
                let stored = try row.layers(0, 1, 2)
                var changed = stored
                changed.change(by: patch)
                let profile = changed.profile
                guard changed != stored else { return .end(profile) }
                return .commit(AccountStore.store(changed, of: subject)) { _ in profile }
            })
    }

    /// The queries that store an account's claims and their index.
    static func store(_ layers: ClaimLayers, of subject: String) -> [Query] {
        [
            Query(
                .setClaims, .text(subject), .text(StoredClaims.write(layers.operators)),
                .text(StoredClaims.write(layers.rules)), .text(StoredClaims.write(layers.profile))),
            Query(.removeClaimValues, .text(subject)),
        ]
            + layers.indexEntries.map {
                Query(.addClaimValue, .text(subject), .text($0.name), .text($0.value))
            }
    }

    /// Decodes the rows of `claims`: the account's columns, and the provider and claims of an identity, if it has any.
    private static func claims(_ rows: [Row]) throws(AccountError) -> VersionedClaims {
        guard let first = rows.first else { return .none }
        var claims = AccountClaims(account: try first.layers(1, 2, 3).merged)
        for row in rows {
            guard let provider = try row.optionalText(4) else { continue }
            var own = try row.optionalObject(5)
            if let state = try row.state(6) { own[IdentityState.claim] = .string(state.name) }
            claims.identities[provider] = own
        }
        return VersionedClaims(
            version: try first.integer(0), claims: claims, isDisabled: try first.optionalInteger(7) != nil)
    }
}
