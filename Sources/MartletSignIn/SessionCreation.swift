internal import MartletAccounts
internal import MartletAudit
internal import MartletCore
internal import MartletEvents
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// An authenticated identity for which a session can be created: its account exists, and may sign in.
struct NewSession: Sendable {
    let subject: String
    let provider: String
    /// With the claims that the account stores for its sessions.
    let identity: Identity
    /// `nil` without accounts.
    let isNewAccount: Bool?
    /// Whether the session needs claims of the account that may not have been published yet.
    let needsClaims: Bool
    let start: LoginFence.Start
    /// The canonical name of a user whose password the gateway stores; `nil` for other identities.
    var user: String?
}

/// What sessions have in common, whatever tokens they are used with.
protocol IssuedSession: Sendable {
    var session: SessionReference { get }
    var provider: String { get }
    /// The version of the account's claims in the store; `nil` if they are not stored there, or it is not known.
    var claimsVersion: Int64? { get }
}

extension IssuedTokens: IssuedSession {}
extension IssuedCookie: IssuedSession {}

/// Turns the identities that providers have authenticated into sessions.
///
/// The account is created before the session, so that an outage in between leaves no session without an account.
struct SessionCreation: Sendable {
    /// The claim that an account stores for its sessions.
    private static let keptClaim = "name"

    let setup: SignInSetup
    let fence: LoginFence
    let ends: SessionEnds

    /// Finds or creates the account of an identity, and records what its issuer granted.
    /// - Parameter start: from before the authentication.
    /// - Throws: 403 for a disabled account, 401 for a revoked identity, 503.
    func prepare(
        _ signIn: SignIn, by provider: ProviderHandle, startedAt start: LoginFence.Start, _ request: LocalRequest
    ) async throws(Failure) -> NewSession {
        do throws(Failure) {
            return try await prepared(signIn, by: provider, startedAt: start, request)
        } catch {
            SignInAudit(setup.audit).recordRejection(.login, error, request, provider: provider.name)
            throw error
        }
    }

    private func prepared(
        _ signIn: SignIn, by provider: ProviderHandle, startedAt start: LoginFence.Start, _ request: LocalRequest
    ) async throws(Failure) -> NewSession {
        guard let accounts = setup.accounts else {
            if let error = signIn.unlessKnown { throw .authentication(error) }
            let subject = Principal(identity: signIn.identity, provider: provider.name, sessionID: nil).subject
            return NewSession(
                subject: subject, provider: provider.name,
                identity: Self.identity(signIn.identity, keeping: signIn.storedClaims), isNewAccount: nil,
                needsClaims: false, start: start)
        }
        let account = try await self.account(of: signIn, provider.name, accounts, request)
        let confirmation = try await confirm(signIn, by: provider)
        var kept: JSONObject = [:]
        kept[Self.keptClaim] = account.storedClaims[Self.keptClaim]
        return NewSession(
            subject: account.subject, provider: provider.name,
            identity: Self.identity(signIn.identity, keeping: kept), isNewAccount: account.isNew,
            needsClaims: account.hasClaims || confirmation == .stateChanged, start: start,
            user: provider.selfServing?.storesRecords == true ? signIn.identity.providerSubject : nil)
    }

    private func account(
        of signIn: SignIn, _ provider: String, _ accounts: any AccountStoring, _ request: LocalRequest
    ) async throws(Failure) -> Account {
        try await requireKnown(signIn, provider, in: accounts)
        let now = setup.clock.unixTime
        let issued = signIn.provedAt(now)
        try await fromAccounts(await setup.transfers?.follow(signIn.identity, provider: provider))
        let identity = signIn.accountIdentity(of: provider)
        let account = try await fromAccounts(
            await accounts.signIn(
                identity, keeping: signIn.storedClaims,
                setting: setup.claimRules.claims(for: identity, loggingInWith: signIn.identity.claims),
                issuedAt: issued, at: now))
        request.callerNote?.note(subject: account.subject, sessionID: nil)
        guard !account.isDisabled else { throw .notAllowed(.accountDisabled) }
        guard !account.isRevoked(issuedAt: issued) else { throw .credentialInvalid(.identityRevoked) }
        if let due = account.deletionDue {
            // Whoever signs in during the grace period takes the requested deletion back. After it the login has to wait
            // until what was acknowledged is done, which an outage may have delayed.
            guard setup.clock.unixMilliseconds < due else { throw .authUnavailable(.accountDeleted) }
            try await fromAccounts(await setup.life?.restore(account.subject))
        }
        return account
    }

    /// Makes sure that a user whose subjects are not all known has an account, where the provider asks for it.
    /// - Throws: the provider's error, 503.
    func requireKnown(_ signIn: SignIn, _ provider: String, in accounts: any AccountStoring) async throws(Failure) {
        guard let error = signIn.unlessKnown else { return }
        guard try await fromAccounts(await accounts.find(signIn.accountIdentity(of: provider))) != nil else {
            throw .authentication(error)
        }
    }

    /// Creates a session.
    /// - Parameter issue: creates it in the store; its parameter is whether the store may end others.
    /// - Throws: 401 if the identity was unlinked, or its password changed, since the authentication began; 503.
    func create<Issued: IssuedSession>(
        _ new: NewSession, _ request: LocalRequest,
        _ issue: (_ evicting: Bool, _ mark: ChangeMark?) async throws(SessionError) -> Issued
    ) async throws(Failure) -> Issued {
        // Without accounts no identity changes.
        let mark =
            setup.accounts == nil ? nil : fence.mark(after: new.start, new.subject, provider: new.provider)
        let issued = try await ends.issue(to: new.subject) { (evicting) async throws(SessionError) in
            try await issue(evicting, mark)
        }
        // The session exists: a later change finds it, an earlier one is read here.
        if new.needsClaims {
            try await published(
                await setup.claims?.publish(
                    new.subject, ifNewerThan: issued.claimsVersion, isNew: new.isNewAccount == true))
        }
        request.callerNote?.note(subject: new.subject, sessionID: issued.session.id)
        if mark != nil { try await endIfOvertaken(issued, new) }
        SignInAudit(setup.audit).record(
            .login, request, provider: new.provider, detail: new.isNewAccount == true ? "new_account" : nil)
        let email = new.identity.claims["email"]?.string.flatMap(EmailAddress.init)
        await recordLogin(of: new.subject, with: new.provider, email: email)
        return issued
    }

    /// Records what the issuer granted with a login, and that it has confirmed the identity.
    /// - Throws: 401 if the identity was revoked while the login was in progress.
    @discardableResult
    func confirm(_ signIn: SignIn, by provider: ProviderHandle) async throws(Failure) -> LoginConfirmation {
        guard let life = setup.life else { return .unchanged }
        do throws(AccountError) {
            let identity = signIn.accountIdentity(of: provider.name)
            guard let confirmation = try await life.confirm(signIn, identity, by: provider) else {
                throw AccountError(.identityRevoked, .notFound, "revoked during the login")
            }
            return confirmation
        } catch {
            throw error.code == .identityRevoked ? .credentialInvalid(error.code) : .account(error)
        }
    }

    /// Adds stored claims where the identity has none of its own.
    private static func identity(_ identity: Identity, keeping kept: JSONObject) -> Identity {
        var claims = identity.claims
        for member in kept.members where claims[member.name] == nil || claims[member.name] == .null {
            claims[member.name] = member.value
        }
        return Identity(
            providerSubject: identity.providerSubject, issuer: identity.issuer, claims: claims,
            authTime: identity.authTime, issuedAt: identity.issuedAt, expiresAt: identity.expiresAt)
    }

    /// Ends a new session whose identity was unlinked, or whose password was changed, during the login.
    private func endIfOvertaken(_ issued: some IssuedSession, _ new: NewSession) async throws(Failure) {
        let failure: Failure
        do throws(StoreError) {
            guard try await wasOvertaken(issued, new) else { return }
            failure = .credentialInvalid(.signInOvertaken)
        } catch {
            failure = .store(error)
        }
        // The tokens were not sent, so a failure here leaves a session that cannot be used.
        _ = try? await setup.sessions.end(issued.session)
        throw failure
    }

    private func wasOvertaken(_ issued: some IssuedSession, _ new: NewSession) async throws(StoreError) -> Bool {
        // A session store that finds marks has looked for that of the account, but does not know users.
        if !setup.sessions.findsMarks,
            try await fence.wasOvertaken(new.start, issued.session.subject, provider: issued.provider)
        {
            return true
        }
        guard let user = new.user else { return false }
        return try await fence.wasOvertaken(new.start, user: user, provider: issued.provider)
    }

    /// Records the login for the list of the account's identities, and for webhooks; a failure is only logged.
    private func recordLogin(of subject: String, with provider: String, email: EmailAddress?) async {
        guard let accounts = setup.accounts else { return }
        do throws(AccountError) {
            try await accounts.noteLogin(of: subject, with: provider, email: email, at: setup.clock.unixTime)
            try await setup.life?.report(.loginSucceeded, of: subject, data: ["provider": .string(provider)])
        } catch {
            setup.logger.warning("recording a login failed", ("provider", provider), ("code", "\(error.code)"))
        }
    }
}

extension SignIn {
    /// The identity in the form of the account store.
    func accountIdentity(of provider: String) -> AccountIdentity {
        AccountIdentity(
            provider: provider, subjects: [identity.providerSubject] + aliases, aliasesDecide: aliasesDecide)
    }
}
