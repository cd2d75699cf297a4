internal import MartletAccounts
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The endpoint that lists the identities of the caller's account.
extension SignInEndpoints {
    /// `GET /identities`: those of the caller's account, or the session's own without an account.
    func identities(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let caller = try await caller(of: request)
        let own = LinkedIdentity(
            provider: caller.principal.provider, linkedAt: caller.principal.identity.issuedAt,
            lastLoginAt: caller.principal.identity.issuedAt)
        let linked = try await linkedIdentities(of: caller.session.subject)
        let identities = linked.isEmpty ? [own] : linked
        let states = try await statusOfIdentities(of: caller.session.subject)
        let entries = identities.map { identity in
            let status = states.first { $0.provider.hasSameBytes(as: identity.provider) }
            return JSONValue.object(Self.entry(identity, status?.state, of: caller, canUnlink: linked.count > 1))
        }
        return SignInResponse.json(["identities": .array(entries)])
    }

    /// The identities of an account; none without accounts.
    func linkedIdentities(of subject: String) async throws(Failure) -> [LinkedIdentity] {
        guard let accounts = setup.accounts else { return [] }
        return try await fromAccounts(await accounts.linkedIdentities(of: subject))
    }

    /// - Parameter caller: the session has only the claims of the identity that created it.
    private static func entry(
        _ identity: LinkedIdentity, _ state: IdentityState?, of caller: Caller, canUnlink: Bool
    ) -> JSONObject {
        var entry: JSONObject = [
            "provider": .string(identity.provider),
            "linked_at": .integer(identity.linkedAt.seconds),
            "last_login_at": .integer((identity.lastLoginAt ?? identity.linkedAt).seconds),
            "state": .string(state?.name ?? IdentityState.unknownName),
            "can_unlink": .bool(canUnlink),
        ]
        guard identity.provider.hasSameBytes(as: caller.principal.provider) else { return entry }
        for claim in ["name", "email"] {
            if let text = caller.principal.identity.claims[claim]?.string { entry[claim] = .string(text) }
        }
        return entry
    }
}
