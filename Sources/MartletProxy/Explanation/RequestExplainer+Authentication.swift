internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter

/// The phases that authenticate, authorize and render the identity headers.
extension RequestExplainer {
    func authorize(
        _ request: Request, _ route: Route, _ explanation: inout RequestExplanation
    ) async throws(Stop) {
        guard route.mode != .none else { return }
        switch request.credential {
        case .nothing:
            guard route.mode == .optional else { throw Stop(.credentialMissing) }
            explanation.policy = route.policy.explain(nil, now: clock.unixTime)
            if case .denied = route.policy.evaluate(nil, now: clock.unixTime) { throw Stop(.credentialMissing) }
            render(route, &explanation)
        case .otherScheme:
            explanation.credential = .other
            throw Stop(.credentialInvalid("auth.scheme_not_accepted"))
        case .malformed:
            explanation.credential = .other
            throw Stop(.credentialInvalid("auth.malformed_authorization"))
        case .bearer(let token):
            let principal = try await authenticateBearer(token, route, &explanation)
            try admit(principal, route, &explanation)
            explanation.consumesCredential = true
        case .basic(let pair):
            explanation.credential = .basic
            guard let handle = basicProvider(of: route) else {
                throw Stop(.credentialInvalid("auth.scheme_not_accepted"))
            }
            let principal = try await authenticate(pair.withBytes { Credential(basic: $0) }, handle, &explanation)
            try admit(principal, route, &explanation)
            explanation.consumesCredential = true
        }
    }

    /// Applies the policy to a verified caller, and renders the identity headers.
    func admit(
        _ principal: Principal, _ route: Route, _ explanation: inout RequestExplanation
    ) throws(Stop) {
        explanation.principal = principal
        explanation.policy = route.policy.explain(principal, now: clock.unixTime)
        if case .denied(let reason) = route.policy.evaluate(principal, now: clock.unixTime) {
            throw Stop(.notAllowed(reason))
        }
        render(route, &explanation)
    }

    /// The same for an assumed caller, as if they had presented a credential that the route accepts.
    func admitAssumed(
        _ assumed: AssumedCaller, _ route: Route, _ explanation: inout RequestExplanation
    ) throws(Stop) {
        guard route.mode != .none else { return }
        explanation.credential = .assumed
        let providers = route.providers.map { snapshot.providers[$0] }
        guard
            let handle = providers.first(where: { assumed.provider?.hasSameBytes(as: $0.name) ?? true })
        else { throw Stop(.credentialInvalid("auth.provider_not_on_route")) }
        explanation.provider = handle
        var assumed = assumed
        if assumed.subject == nil, snapshot.signIn.subjects != nil {
            explanation.isNewAccount = true
            assumed.subject = Self.newSubject
        }
        try admit(assumed.principal(by: handle.name), route, &explanation)
    }

    func authenticateBearer(
        _ token: Secret, _ route: Route, _ explanation: inout RequestExplanation
    ) async throws(Stop) -> Principal {
        let plan = snapshot.plans[Int(snapshot.planOfRoute[route.index])]
        let bytes = token.withBytes { $0 }
        if unsafe bytes.withUnsafeBufferPointer({ unsafe OwnToken.matches($0) }) {
            explanation.credential = .session
            return try await verifySession(Credential(bearer: bytes), route, &explanation)
        }
        explanation.credential = .bearer
        guard route.credentials.contains(.direct) else {
            throw Stop(.credentialInvalid("auth.direct_not_accepted"))
        }
        guard let index = ProviderChoice.pick(bytes, among: plan.providers, of: snapshot.providers) else {
            throw Stop(.credentialInvalid("auth.no_provider_claims_it"))
        }
        return try await authenticate(Credential(bearer: bytes), snapshot.providers[Int(index)], &explanation)
    }

    /// The provider that verifies names and passwords on a route.
    func basicProvider(of route: Route) -> ProviderHandle? {
        guard snapshot.compiledRoutes[route.index].acceptsBasic else { return nil }
        return route.providers.map { snapshot.providers[$0] }.first { $0.accepts.contains(.basic) }
    }

    /// Starts, calls and stops a provider; the subject is that of the identity's account.
    func authenticate(
        _ credential: Credential, _ handle: ProviderHandle, _ explanation: inout RequestExplanation
    ) async throws(Stop) -> Principal {
        explanation.provider = handle
        await handle.running?.start()
        let result = await verify(credential, handle, &explanation)
        explanation.health = handle.reporting?.health
        await handle.running?.shutdown()
        let identity: Identity
        switch result {
        case .success(let proven): identity = proven
        case .failure(let error): throw Stop(error)
        }
        guard let subjects = snapshot.signIn.subjects else {
            return Principal(identity: identity, provider: handle.name, sessionID: nil)
        }
        do throws(AuthenticationError) {
            let subject =
                hasAccounts ? try await subjects.knownSubject(of: identity, provider: handle.name) : nil
            explanation.isNewAccount = subject == nil
            return Principal(
                identity: identity, provider: handle.name, subject: subject ?? Self.newSubject, sessionID: nil)
        } catch {
            throw Stop(error)
        }
    }

    /// Stands for the subject of an account that does not exist yet.
    package static let newSubject = "usr_(new)"

    func verifySession(
        _ credential: Credential, _ route: Route, _ explanation: inout RequestExplanation
    ) async throws(Stop) -> Principal {
        guard let sessions = snapshot.signIn.sessions, route.credentials.contains(.session) else {
            throw Stop(.credentialInvalid("auth.sessions_not_accepted"))
        }
        guard sharesSessions else {
            throw Stop(
                .authUnavailable("session.store_not_shared"),
                cause: "sessions are in the memory of the running gateway (store.url is memory:), "
                    + "where no other process can look them up")
        }
        let session: ProvenSession
        do throws(AuthenticationError) {
            session = try await sessions.inspect(credential, in: context)
        } catch {
            throw Stop(error)
        }
        let handle = route.providers.map { snapshot.providers[$0] }
            .first { $0.name.hasSameBytes(as: session.principal.provider) }
        guard let handle else { throw Stop(.credentialInvalid("auth.provider_not_on_route")) }
        explanation.provider = handle
        return session.principal
    }

    var context: AuthenticationContext {
        AuthenticationContext(now: clock.unixTime, deadline: clock.monotonicTime + Self.timeout)
    }

    func verify(
        _ credential: Credential, _ handle: ProviderHandle, _ explanation: inout RequestExplanation
    ) async -> Result<Identity, AuthenticationError> {
        guard let authenticating = handle.authenticating else {
            return .failure(.rejected("auth.provider_takes_no_credential"))
        }
        let context = context
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

    func render(_ route: Route, _ explanation: inout RequestExplanation) {
        var block = ByteBuffer()
        explanation.droppedHeaders = snapshot.routes.injections[route.injection].render(
            explanation.principal, into: &block)
        if let principal = explanation.principal, let assertion = snapshot.signIn.assertion {
            let dropped = assertion.append(
                for: principal, injection: snapshot.routes.injections[route.injection],
                upstream: snapshot.upstreams[route.upstream].name, now: clock.unixTime, into: &block)
            if let dropped { explanation.droppedHeaders.append(dropped) }
        }
        explanation.headers = block.array.split(separator: 0x0A).map { line in
            String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        }
    }
}
