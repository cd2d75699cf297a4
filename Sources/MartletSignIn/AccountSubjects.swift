package import MartletAccounts
package import MartletCore
package import MartletIdentities
internal import MartletJSON
package import MartletProvider

/// Resolves the subject of a direct bearer token: that of the identity's account, the same as in its sessions.
package struct AccountSubjects: SubjectResolving {
    private let accounts: (any AccountStoring)?
    private let rules: LoginClaimRules
    private let transfers: TransferredIdentities?
    private let clock: Clock

    /// - Parameters:
    ///   - accounts: `nil` without `accounts:`; subjects are then `<provider>:<subject>`.
    ///   - rules: give accounts claims.
    ///   - transfers: recognizes users who moved from another team of developers.
    package init(
        accounts: (any AccountStoring)?, rules: LoginClaimRules = LoginClaimRules(),
        transfers: TransferredIdentities? = nil, clock: Clock
    ) {
        self.accounts = accounts
        self.rules = rules
        self.transfers = transfers
        self.clock = clock
    }

    /// The subject of the identity's account, which is created if there is none; a disabled account is denied.
    ///
    /// No claims are stored from such a token: those that an app sends only once come with a login.
    package func subject(
        of identity: Identity, provider: String
    ) async throws(AuthenticationError) -> ResolvedSubject {
        guard let accounts else { return Self.withoutAccount(identity, provider) }
        let account: Account
        do throws(AccountError) {
            try await transfers?.follow(identity, provider: provider)
            let known = AccountIdentity(provider: provider, subjects: [identity.providerSubject])
            account = try await accounts.signIn(
                known, keeping: [:], setting: rules.claims(for: known, loggingInWith: nil), at: clock.unixTime)
        } catch {
            throw .unavailable(error.code, cause: error)
        }
        return try await resolved(account, of: identity, accounts)
    }

    /// The subject of the identity's account; `nil` if there is none.
    package func knownSubject(
        of identity: Identity, provider: String
    ) async throws(AuthenticationError) -> ResolvedSubject? {
        guard let accounts else { return Self.withoutAccount(identity, provider) }
        let account: Account?
        do throws(AccountError) {
            let known = AccountIdentity(provider: provider, subjects: [identity.providerSubject])
            account = try await accounts.find(known)
        } catch {
            throw .unavailable(error.code, cause: error)
        }
        guard let account else { return nil }
        return try await resolved(account, of: identity, accounts)
    }

    private static func withoutAccount(_ identity: Identity, _ provider: String) -> ResolvedSubject {
        ResolvedSubject(Principal(identity: identity, provider: provider, sessionID: nil).subject)
    }

    /// The subject of an account that is not disabled, with its claims.
    private func resolved(
        _ account: Account, of identity: Identity, _ accounts: any AccountStoring
    ) async throws(AuthenticationError) -> ResolvedSubject {
        let subject = try account.activeSubject(of: identity)
        guard account.hasClaims else { return ResolvedSubject(subject) }
        do throws(AccountError) {
            return ResolvedSubject(subject, claims: try await accounts.claims(of: subject).claims)
        } catch {
            throw .unavailable(error.code, cause: error)
        }
    }
}

extension Account {
    /// The subject of an active account, for a credential of an identity that has not been revoked since.
    /// - Throws: `account.disabled`, for 403; `identity.revoked` or `account.deleted`, for 401.
    fileprivate func activeSubject(of identity: Identity) throws(AuthenticationError) -> String {
        guard !isDisabled else { throw .denied(.accountDisabled) }
        guard !isRevoked(issuedAt: identity.issuedAt) else { throw .rejected(.identityRevoked) }
        guard !isBeingDeleted else { throw .rejected(.accountDeleted) }
        return subject
    }
}
