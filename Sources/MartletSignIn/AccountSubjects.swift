package import MartletAccounts
package import MartletCore
package import MartletIdentities
internal import MartletJSON
package import MartletProvider
internal import MartletSession

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
    /// An identity that names an existing account gets no other one, and one without an account gets none.
    ///
    /// No claims are stored from such a token: those that an app sends only once come with a login.
    package func subject(
        of identity: Identity, provider: String
    ) async throws(AuthenticationError) -> ResolvedSubject {
        guard let accounts, identity.subjectSource != .provider else { return Self.withoutAccount(identity, provider) }
        guard identity.subjectSource == .account else { return try await existing(identity, accounts) }
        let account: Account
        do throws(AccountError) {
            try await transfers?.follow(identity, provider: provider)
            let known = AccountIdentity(provider: provider, subjects: [identity.providerSubject])
            account = try await accounts.signIn(
                known, keeping: [:], setting: rules.claims(for: known, loggingInWith: nil),
                issuedAt: identity.issuedAt, at: clock.unixTime)
        } catch {
            throw error.kind == .outdated ? .rejected(error.code) : .unavailable(error.code, cause: error)
        }
        return try await resolved(account, of: identity, accounts)
    }

    /// The subject of the identity's account; `nil` if there is none.
    package func knownSubject(
        of identity: Identity, provider: String
    ) async throws(AuthenticationError) -> ResolvedSubject? {
        guard let accounts, identity.subjectSource != .provider else { return Self.withoutAccount(identity, provider) }
        guard identity.subjectSource == .account else { return try await existing(identity, accounts) }
        let known = AccountIdentity(provider: provider, subjects: [identity.providerSubject])
        guard let account = try await available(await accounts.find(known)) else { return nil }
        return try await resolved(account, of: identity, accounts)
    }

    /// The account that an identity names, with its claims.
    private func existing(
        _ identity: Identity, _ accounts: any AccountStoring
    ) async throws(AuthenticationError) -> ResolvedSubject {
        let account = try await available(await accounts.account(identity.providerSubject))
        let claims =
            account?.claims.isEmpty == false
            ? try await available(await accounts.claims(of: identity.providerSubject).claims) : AccountClaims()
        guard let account, account.deletion == nil else { throw .rejected(.accountDeleted) }
        guard account.disabledAt == nil else {
            throw .denied(.accountDisabled).of(RejectedCaller(subject: account.subject))
        }
        return ResolvedSubject(account.subject, claims: claims)
    }

    /// The subject of the account of a user whose attempt has failed.
    package func subject(of user: AuthenticationError.AttemptedUser, provider: String) async -> String? {
        guard let accounts else { return user.subject(provider: provider) }
        var name = "-"
        if case .known(let subject) = user { name = subject }
        let account = try? await accounts.find(AccountIdentity(provider: provider, subjects: [name]))
        guard case .known = user else { return nil }
        // Without an account there is no subject, and a name may be an address.
        return account?.subject
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
        return ResolvedSubject(subject, claims: try await available(await accounts.claims(of: subject).claims))
    }

    /// A value of the account store, whose errors are outages.
    private func available<Value>(
        _ value: @autoclosure () async throws(AccountError) -> Value
    ) async throws(AuthenticationError) -> Value {
        do throws(AccountError) { return try await value() } catch { throw .unavailable(error.code, cause: error) }
    }
}

extension Account {
    /// The subject of an active account, for a credential of an identity that has not been revoked since.
    /// - Throws: `account.disabled`, for 403; `identity.revoked` or `account.deleted`, for 401.
    fileprivate func activeSubject(of identity: Identity) throws(AuthenticationError) -> String {
        let caller = RejectedCaller(subject: subject)
        guard !isDisabled else { throw .denied(.accountDisabled).of(caller) }
        guard !isRevoked(issuedAt: identity.issuedAt) else { throw .rejected(.identityRevoked).of(caller) }
        guard !isBeingDeleted else { throw .rejected(.accountDeleted).of(caller) }
        return subject
    }
}
