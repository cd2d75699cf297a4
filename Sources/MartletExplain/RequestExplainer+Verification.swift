internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletRouter

/// What verifies a credential that is explained.
extension RequestExplainer {
    /// Verifies a credential with what the authenticator chose.
    func verify(
        _ request: VerificationRequest, _ facts: RequestFacts, _ explanation: inout RequestExplanation
    ) async throws(Stop) -> VerificationResult {
        switch request.target {
        case .provider(let handle): return await authenticate(request.credential, handle, facts, &explanation)
        case .proof: return .failure(.rejected("auth.proof_missing"))
        case .sessions(let sessions):
            guard sharesSessions else {
                throw Stop(
                    .authUnavailable("session.store_not_shared"),
                    cause: "sessions are in the memory of the running gateway (store.url is memory:), "
                        + "where no other process can look them up: --admin asks it")
            }
            do throws(AuthenticationError) {
                let session = try await sessions.inspect(request.credential, in: context)
                return .success(VerifiedPrincipal(session, in: context))
            } catch {
                return .failure(error)
            }
        }
    }

    /// Starts, calls and stops a provider; the subject is that of the identity's account.
    private func authenticate(
        _ credential: Credential, _ handle: ProviderHandle, _ facts: RequestFacts,
        _ explanation: inout RequestExplanation
    ) async -> VerificationResult {
        explanation.provider = handle
        await handle.running?.start()
        let result = await verify(credential, handle, facts, &explanation)
        explanation.health = handle.reporting?.health
        await handle.running?.shutdown()
        let identity: Identity
        switch result {
        case .success(let proven): identity = proven
        case .failure(let error): return .failure(error)
        }
        guard let subjects = snapshot.authentication.subjects else {
            return .success(handle.principal(of: identity))
        }
        do throws(AuthenticationError) {
            let subject =
                hasAccounts ? try await subjects.knownSubject(of: identity, provider: handle.name) : nil
            explanation.isNewAccount = subject == nil
            return .success(
                VerifiedPrincipal(
                    Principal(
                        identity: identity, provider: handle.name, subject ?? ResolvedSubject(Self.newSubject))))
        } catch {
            return .failure(error)
        }
    }

    /// Stands for the subject of an account that does not exist yet.
    package static let newSubject = "usr_(new)"

    private var context: AuthenticationContext { context(for: nil) }

    private func context(for facts: RequestFacts?) -> AuthenticationContext {
        AuthenticationContext(now: clock.unixTime, deadline: clock.monotonicTime + Self.timeout, request: facts)
    }

    private func verify(
        _ credential: Credential, _ handle: ProviderHandle, _ facts: RequestFacts,
        _ explanation: inout RequestExplanation
    ) async -> Result<Identity, AuthenticationError> {
        guard let authenticating = handle.authenticating else {
            return .failure(.rejected("auth.provider_takes_no_credential"))
        }
        let context = context(for: handle.reuseKey == nil ? nil : facts)
        let result: Result<Identity, AuthenticationError>
        do throws(AuthenticationError) {
            result = .success(try await authenticating.authenticate(credential, in: context))
        } catch {
            result = .failure(error)
        }
        if let explaining = handle.explaining {
            explanation.checks = await explaining.explain(credential, in: context)
        } else {
            var failure: ErrorCode?
            if case .failure(let error) = result { failure = error.code }
            explanation.checks = [CheckOutcome(check: "credential", failure: failure, detail: "")]
        }
        return result
    }
}
