package import MartletAccounts
internal import MartletCore
package import MartletJSON
package import MartletProvider

/// What is known of a subject that has an account.
package struct AccountReport: Sendable {
    /// An identity of the account.
    struct Identity: Sendable {
        let provider: String
        /// The provider's subject and its aliases.
        let subjects: [String]
        let times: LinkedIdentity?
        let status: IdentityStatus?
        /// Whether the issuer has verified the address, if that is stored.
        let isEmailVerified: Bool?
        /// `nil` for a provider that does not throttle users, and if it is not known.
        let lock: Lock?
    }

    /// Whether attempts of a user are rejected.
    enum Lock: Sendable {
        case open
        case throttled(UserThrottling)
    }

    let account: AccountRecord
    let identities: [Identity]
    /// The number of live sessions; `nil` if it is not known.
    let sessions: Int?
}

extension AccountReport {
    /// - Parameters:
    ///   - sessions: `nil` where they are not looked at.
    ///   - providers: those that know whether users are throttled.
    /// - Returns: `nil` for an unknown subject.
    package init?(
        of subject: String, in accounts: AccountStore, sessions: OperatorSessions? = nil,
        providers: [ProviderHandle] = []
    ) async throws(AccountError) {
        guard let account = try await accounts.account(subject) else { return nil }
        let times = try await accounts.linkedIdentities(of: subject)
        let states = try await accounts.life.identityStates(of: subject)
        let claims = try await accounts.claims(of: subject).claims
        var identities: [Identity] = []
        for identity in try await accounts.identities(of: subject) {
            identities.append(
                Identity(
                    provider: identity.provider, subjects: identity.subjects,
                    times: times.first { $0.provider.hasSameBytes(as: identity.provider) },
                    status: states.first { $0.provider.hasSameBytes(as: identity.provider) },
                    isEmailVerified: claims.identities[identity.provider]?["email_verified"]?.bool,
                    lock: await Self.lock(of: identity, providers)))
        }
        // What is known of the account matters more during an outage of the sessions' store.
        self.init(account: account, identities: identities, sessions: try? await sessions?.count(of: subject))
    }

    private static func lock(of identity: AccountIdentity, _ providers: [ProviderHandle]) async -> Lock? {
        let provider = providers.first { $0.name.hasSameBytes(as: identity.provider) }
        guard let reporting = provider?.userUnlocking, let subject = identity.subjects.first else { return nil }
        do throws(AuthenticationError) {
            return try await reporting.throttling(of: subject).map { .throttled($0) } ?? .open
        } catch {
            return nil
        }
    }
}

extension AccountReport {
    /// All but secrets, and the claims that others have set, which have a resource of their own.
    package var document: JSONObject {
        let deletion = account.deletion
        let state =
            deletion.map { $0.deletedAt == nil ? "being_deleted" : "deleted" }
            ?? (account.disabledAt == nil ? "active" : "disabled")
        return [
            "subject": .string(account.subject), "state": .string(state),
            "created_at": .integer(account.createdAt.seconds),
            "disabled": .bool(account.disabledAt != nil),
            "disabled_at": account.disabledAt.map { .integer($0.seconds) } ?? .null,
            "deletion": deletion.map { deletion in
                [
                    "due_at": .integer(deletion.dueAt.seconds), "reason": .string(deletion.reason),
                    "deleted_at": deletion.deletedAt.map { .integer($0.seconds) } ?? .null,
                ]
            } ?? .null,
            "identities": .array(identities.map { .object($0.document) }),
            "claims": .string("/subjects/\(account.subject)/claims"),
            "stored_claims": .object(account.storedClaims), "profile": .object(account.profile),
            "sessions": sessions.map { .integer(Int64($0)) } ?? .null,
        ]
    }
}

extension AccountReport.Identity {
    fileprivate var document: JSONObject {
        var document: JSONObject = [
            "provider": .string(provider), "subject": subjects.first.map { .string($0) } ?? .null,
            "aliases": .array(subjects.dropFirst().map { .string($0) }),
            "linked_at": times.map { .integer($0.linkedAt.seconds) } ?? .null,
            "last_login_at": times?.lastLoginAt.map { .integer($0.seconds) } ?? .null,
            "credential_state": .string(status?.state?.name ?? IdentityState.unknownName),
            "checked_at": status?.checkedAt.map { .integer($0.seconds) } ?? .null,
            "grant": .bool(status?.hasGrant ?? false),
        ]
        if let isEmailVerified { document["email_verified"] = .bool(isEmailVerified) }
        switch lock {
        case nil: break
        case .open?: document["lock"] = .null
        case .throttled(let throttling)?:
            document["lock"] = [
                "seconds": throttling.remaining.map { .integer($0.wholeSeconds) } ?? .null,
                "known_networks": .integer(Int64(throttling.knownNetworks)),
            ]
        }
        return document
    }
}
