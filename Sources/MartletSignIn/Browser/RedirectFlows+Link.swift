internal import MartletAccounts
internal import MartletBrowser
internal import MartletCore
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Linking an identity of a provider to the account of a browser's session.
extension RedirectFlows {
    /// `POST /account/link/{provider}`: sends the browser to the provider, for the session that asks for it.
    func startLink(_ caller: Caller) async throws(Failure) -> BrowserResponse {
        guard endpoints.setup.accounts != nil else { throw .noRoute(.signInNoAccounts) }
        let session = SignInAttempt.Session(subject: caller.session.subject, id: caller.session.id)
        return try await begin(.link, .page(call.path("account")), session, status: 303, try call.cookies())
    }

    /// Links what the provider has proved, if the session that asked for it is still live.
    ///
    /// The session's cookie is renewed by the page that follows: a form of the provider's comes without it.
    func link(_ signIn: SignIn, _ attempt: SignInAttempt) async throws(Failure) -> CallbackResponse {
        guard let accounts = endpoints.setup.accounts, let bound = attempt.session else {
            throw .noRoute(.signInNoAccounts)
        }
        let session = try await endpoints.liveSession(SessionReference(subject: bound.subject, id: bound.id))
        let page = call.path("account")
        let result: AccountResult
        var proof: String?
        do throws(Failure) {
            try await endpoints.link(
                signIn, of: provider.handle, to: bound.subject, for: session, accounts, call.request)
            (result, proof) = (.linked(provider.name), try await LinkProof(session: bound.id, call: call).make())
        } catch {
            switch error.reason {
            case .accountsBoundElsewhere: result = .identityTaken(provider.name)
            case .accountsProviderTaken: result = .alreadyLinked(provider.name)
            default: throw error
            }
        }
        return CallbackResponse(destination: .page, location: result.location(page, proof: proof))
    }
}
