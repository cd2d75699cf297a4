internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletJSON
internal import MartletProvider
package import MartletProxy
internal import MartletSession

/// The endpoints that Martlet answers itself: logins, sessions, links, passwords, and what belongs to them.
///
/// A request is found its endpoint, then its method, then its size is judged; only then is anybody asked. Whatever is
/// refused leaves as a ``Failure``, the one map to statuses.
package final class SignInEndpoints: Sendable {
    let setup: SignInSetup
    let fence: LoginFence
    let budgets: AttemptBudgets
    private let crossOrigin: CrossOrigin
    /// The description of the endpoints, ready to be sent.
    let description: LocalResponse

    package init(_ setup: SignInSetup) {
        self.setup = setup
        budgets = AttemptBudgets(setup.providers)
        fence = LoginFence(store: setup.store, keyPrefix: setup.storeKeyPrefix)
        crossOrigin = CrossOrigin(origins: setup.configuration.corsOrigins)
        description = Answer.json(OpenAPI.document(path: setup.configuration.path))
    }

    /// Answers a request to one of the paths; waits for stores and providers, never blocks a thread.
    package func answer(_ request: LocalRequest) async -> LocalResponse {
        guard let endpoint = Endpoint.find(request.path, in: setup) else {
            return crossOrigin.mark(LocalResponse(refusing: .noRoute(.signInUnknownEndpoint)), to: request)
        }
        let answer: LocalResponse
        do throws(Failure) {
            answer = try await self.answer(request, at: endpoint)
        } catch {
            answer = LocalResponse(refusing: error.describingBody())
        }
        return endpoint.isForPages ? crossOrigin.mark(answer, to: request) : answer
    }

    private func answer(_ request: LocalRequest, at endpoint: Endpoint) async throws(Failure) -> LocalResponse {
        if request.method == "OPTIONS", let answer = crossOrigin.preflight(request, for: endpoint) { return answer }
        let method = request.method == "HEAD" ? "GET" : request.method
        guard endpoint.methods.contains(method) else { throw .methodNotAllowed(endpoint.allow) }
        guard request.bodyBytes <= SignInBody.maximumBytes else { throw .tooLarge(.signInBodyTooLarge) }
        switch endpoint {
        case .login(let provider, let signingIn): return try await login(request, with: provider, signingIn)
        case .nonce: return try await nonce(request)
        case .refresh: return try await refresh(request)
        case .logout: return try await logout(request)
        case .session: return try await session(request)
        case .sessions: return try await sessions(request)
        case .identities: return try await identities(request)
        case .oneSession(let id): return try await endSession(id, request)
        case .link(let name, let provider):
            guard method == "POST" else { return try await unlink(name, provider, request) }
            return try await link(request, with: provider)
        case .password: return try await changePassword(request)
        case .description: return description
        case .keySet(let keys): return Answer.json(keys)
        case .appSiteAssociation(let apps): return Self.appSiteAssociation(apps)
        case .changePassword(let url): return Answer.seeOther(url)
        }
    }

    /// Lets an app's platform offer the passwords of this host (Apple, "Supporting associated domains").
    private static func appSiteAssociation(_ apps: [String]) -> LocalResponse {
        Answer.json(["webcredentials": .object(["apps": .array(apps.map { .string($0) })])])
    }

    /// What a provider is told about the request.
    func context(
        of request: LocalRequest, for purpose: AuthenticationContext.Purpose = .request
    ) -> AuthenticationContext {
        AuthenticationContext(
            now: setup.clock.unixTime, deadline: setup.clock.monotonicTime + LocalLimits.patience,
            client: request.network, address: request.address, purpose: purpose)
    }
}

// MARK: - Who is calling

/// The live session behind a request.
struct Caller: Sendable {
    let principal: Principal
    let session: SessionReference
}

extension SignInEndpoints {
    /// Proves a request's session by the store, never by a loop's copy.
    /// - Throws: 401 without one, 503 when the store cannot tell.
    func caller(of request: LocalRequest) async throws(Failure) -> Caller {
        let token = try Self.bearerToken(of: request)
        let prefix = type(of: setup.sessions).accessPrefix
        guard token.starts(with: prefix.utf8) else { throw .credentialInvalid(.signInSessionNeeded) }
        let proven: ProvenSession
        do throws(AuthenticationError) {
            proven = try await setup.sessions.judge(Credential(bearer: token), in: context(of: request))
        } catch {
            throw .authentication(error)
        }
        guard let id = proven.principal.sessionID else { throw .credentialInvalid(.signInSessionNeeded) }
        return Caller(
            principal: proven.principal, session: SessionReference(subject: proven.principal.subject, id: id))
    }

    private static func bearerToken(of request: LocalRequest) throws(Failure) -> [UInt8] {
        let values = request.fields.filter { $0.name.lowercased() == "authorization" }.map(\.value)
        guard let value = values.first else { throw .credentialMissing }
        let bytes = Array(value.utf8)
        guard values.count == 1,
            case .bearer(let range) = AuthorizationValue(bytes.span, ByteRange(from: 0, to: bytes.count))
        else { throw .credentialInvalid(.signInBadAuthorization) }
        return Array(bytes[range.start..<range.end])
    }
}
