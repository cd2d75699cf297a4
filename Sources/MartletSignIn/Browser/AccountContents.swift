internal import MartletAccounts
internal import MartletBrowser
internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletJSON
internal import MartletPages
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// What the account's page shows of the caller's account.
struct AccountContents: Sendable {
    /// Of the sessions in the list.
    private static let maximumSessions = 50

    let endpoints: SignInEndpoints
    let call: BrowserCall
    let caller: Caller

    private var setup: SignInSetup { endpoints.setup }
    private var path: String { call.path("account") }

    /// The name or the address that the user is known by.
    var name: String? { caller.principal.identity.displayName }

    /// Where the browser is sent after the form that links an identity.
    var formOrigins: [String] {
        redirecting.compactMap { $0.redirecting.redirectFlow(in: call.browser)?.origins }.flatMap(\.self)
            + call.setup.configuration.returnOrigins
    }

    private var redirecting: [RedirectingProvider] { setup.providers.compactMap(RedirectingProvider.init) }

    private func kind(_ name: String) -> ProviderButton.Kind {
        setup.provider(name).map(call.setup.kind(of:)) ?? .other(label: name)
    }

    func identities() async throws(Failure) -> [AccountPage.Identity] {
        let linked = try await endpoints.linkedIdentities(of: caller.session.subject)
        let states = try await endpoints.statusOfIdentities(of: caller.session.subject)
        let own = caller.principal
        let shown =
            linked.isEmpty
            ? [
                LinkedIdentity(
                    provider: own.provider, linkedAt: own.identity.issuedAt, lastLoginAt: own.identity.authTime)
            ] : linked
        return shown.map { identity in
            let isOwn = identity.provider.hasSameBytes(as: own.provider)
            let state = states.first { $0.provider.hasSameBytes(as: identity.provider) }?.state
            return AccountPage.Identity(
                provider: kind(identity.provider), name: isOwn ? own.identity.claims["email"]?.string : nil,
                linkedAt: identity.linkedAt, lastUsedAt: identity.lastLoginAt,
                isRevoked: state == .revoked || state == .deleted,
                unlink: linked.count > 1 ? "\(path)/unlink/\(identity.provider)" : nil)
        }
    }

    /// The providers that the account has no identity of.
    func linkable() async throws(Failure) -> [AccountPage.Linkable] {
        guard setup.accounts != nil else { return [] }
        let linked = try await endpoints.linkedIdentities(of: caller.session.subject)
        return redirecting.compactMap { provider in
            guard provider.redirecting.redirectFlow(in: call.browser) != nil,
                !linked.contains(where: { $0.provider.hasSameBytes(as: provider.name) })
            else { return nil }
            return AccountPage.Linkable(
                provider: call.setup.kind(of: provider.handle), action: "\(path)/link/\(provider.name)")
        }
    }

    func sessions() async throws(Failure) -> [AccountPage.Session] {
        let summaries = try await fromSessions(await setup.sessions.list(subject: caller.session.subject))
        return summaries.prefix(Self.maximumSessions).map { session in
            let address = session.lastAddress.isEmpty ? session.client.address : session.lastAddress
            return AccountPage.Session(
                deviceName: session.client.deviceName, userAgent: session.client.userAgent,
                location: address.isEmpty ? nil : SocketEndpoint.text(of: address), provider: kind(session.provider),
                signedInAt: session.createdAt, lastUsedAt: session.lastSeenAt,
                isCurrent: session.id.hasSameBytes(as: caller.session.id), end: "\(path)/sessions/\(session.id)")
        }
    }

    /// The form that changes the password; `nil` for accounts without one.
    func password(_ error: FormError?) async throws(Failure) -> AccountPage.PasswordChange? {
        let subjects = try await fromProvider(await endpoints.subjects(of: caller))
        let owner = setup.providers.first { $0.passwordChanging != nil && subjects[$0.name] != nil }
        guard let owner, let changing = owner.passwordChanging else { return nil }
        return AccountPage.PasswordChange(
            action: "\(path)/password", username: subjects[owner.name], minimumLength: changing.minimumPasswordLength,
            error: error)
    }

    /// The form that deletes the account; `nil` without accounts.
    func deletion(isUnconfirmed: Bool) -> AccountPage.Deletion? {
        guard setup.life != nil else { return nil }
        let proof = caller.principal.identity.authTime
        let isFresh = call.now < proof.advanced(bySeconds: SignInEndpoints.deletionProofAge.wholeSeconds)
        return AccountPage.Deletion(
            action: "\(path)/delete",
            signIn: isFresh ? nil : PageURL.local(call.path("sign-in"), [("confirm", "true"), ("return_to", path)]),
            grace: setup.deletionGrace.wholeSeconds, isUnconfirmed: isUnconfirmed)
    }
}

extension SignInEndpoints {
    /// Of new passwords, in characters.
    var minimumPasswordLength: Int {
        setup.providers.lazy.compactMap { $0.passwordChanging?.minimumPasswordLength }.first ?? 8
    }
}
