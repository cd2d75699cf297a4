internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletRouter

/// The phases that authenticate, authorize and render the identity headers.
extension RequestExplainer {
    /// An outcome of the authenticator, without what only a forwarder needs.
    private enum Outcome {
        case authorized(headers: [String])
        case rejected(Rejection)
        case pending(VerificationRequest)
    }

    func authorize(_ request: Request, _ route: Route, _ explanation: inout RequestExplanation) async throws(Stop) {
        guard route.mode != .none else { return explainConstants(route, &explanation) }
        let header: HeaderSearch.Found?
        do throws(Failure) { header = try findHeader(of: request, on: route) } catch { throw Stop(error) }
        let cookie = try sessionCookie(of: request, on: route, isAlone: request.authorization == nil && header == nil)
        explanation.credential = header != nil ? .header : cookie != nil ? .cookie : form(of: request)
        if request.authorization == nil, header == nil, cookie == nil, route.mode == .optional {
            explanation.policy = route.policy.explain(nil, now: clock.unixTime)
        }
        let presented = Presented(
            request: request, header: header, cookie: cookie,
            facts: RequestFacts(
                method: String(decoding: request.method, as: UTF8.self),
                host: String(decoding: request.authority, as: UTF8.self), path: explanation.path ?? "",
                head: request.received))
        var authenticator = Authenticator(snapshot.authentication)
        var credential = CredentialState()
        credential.hasForeignKey =
            header == nil && request.authorization == nil && hasForeignKey(request, on: route)
        var outcome = decide(presented, route, nil, &authenticator, &credential)
        var principal: Principal?
        if case .pending(let verification) = outcome {
            let result = try await verify(verification, presented.facts, &explanation)
            principal = try? result.get().principal
            outcome = decide(presented, route, BoxedVerificationResult(result), &authenticator, &credential)
        }
        if credential.provider >= 0 { explanation.provider = snapshot.providers[Int(credential.provider)] }
        switch outcome {
        case .authorized(let headers):
            explainPolicy(principal, route, &explanation)
            explanation.headers = headers
            explanation.droppedHeaders = authenticator.droppedHeaders
            explanation.consumesCredential = principal != nil
        case .rejected(let rejection):
            if case .verification(let error, _) = rejection.cause { throw Stop(error) }
            if case .policy = rejection.cause { explainPolicy(principal, route, &explanation) }
            throw Stop(rejection.failure)
        // The result of a verification is void only after a reload or a revocation.
        case .pending: throw Stop(.authUnavailable("auth.verdict_overtaken"))
        }
    }

    /// A request with what a loop finds in it for the authenticator.
    private struct Presented {
        let request: Request
        let header: HeaderSearch.Found?
        /// Where the value of the session cookie is.
        let cookie: ByteRange?
        let facts: RequestFacts
    }

    /// The session cookie of a browser, as the request path finds it.
    /// - Parameter isAlone: whether the request has no other credential.
    private func sessionCookie(
        of request: Request, on route: Route, isAlone: Bool
    ) throws(Stop) -> ByteRange? {
        guard let browser = snapshot.browser else { return nil }
        var head = RequestHead(maximumFields: snapshot.limits.headerFields)
        var parser = RequestParser(maximumHeadBytes: snapshot.limits.headerBytes)
        guard case .complete = parser.parse(request.bytes.span, into: &head) else { return nil }
        let found = browser.cookies.find(in: request.bytes.span, head.fields)
        if let problem = found.problem, route.mode == .required,
            !NavigationRule.isNavigation(request.bytes.span, head.fields, method: head.method)
        {
            throw Stop(problem.failure)
        }
        let rules = snapshot.routeRules[route.index].crossOrigin
        let facts = BrowserRules.Request(
            method: head.method, opensWebSocket: false, hasAuthorization: !isAlone, takesCredentials: true,
            namedOrigin: rules?.namedOrigin(of: head.fields, request.bytes.span) ?? [])
        do throws(Failure) {
            guard
                case .session(let cookie) = try browser.use(
                    of: found.session, request.bytes.span, head.fields, by: facts)
            else { return nil }
            return cookie
        } catch {
            throw Stop(error)
        }
    }

    private func hasForeignKey(_ request: Request, on route: Route) -> Bool {
        let head = head(of: request)
        return unsafe request.bytes.withUnsafeBufferPointer {
            unsafe snapshot.authentication.hasForeignKey(on: route.index, head.fields, in: $0)
        }
    }

    private func findHeader(of request: Request, on route: Route) throws(Failure) -> HeaderSearch.Found? {
        var search = HeaderSearch(snapshot.authentication, route: route.index)
        for field in request.fields { search.examine(field, in: request.bytes.span, snapshot.authentication) }
        return try search.result(hasAuthorization: request.authorization != nil)
    }

    /// Calls the authenticator, as a loop does.
    private func decide(
        _ presented: Presented, _ route: Route, _ result: BoxedVerificationResult?,
        _ authenticator: inout Authenticator, _ credential: inout CredentialState
    ) -> Outcome {
        let time = LoopTime(monotonic: clock.monotonicTime.nanoseconds, unix: clock.unixTime.seconds)
        let request = presented.request
        return unsafe request.bytes.withUnsafeBufferPointer { bytes in
            let exchange = ExchangeID(raw: 0)
            guard let routed = RoutedRequest(exchange: exchange, route: route.index, mount: route.mount) else {
                return .rejected(Rejection(.noRoute))
            }
            let outcome: AuthorizationOutcome
            if let cookie = presented.cookie {
                outcome = unsafe authenticator.authorize(
                    routed, bytes, cookie: cookie, result: result, at: time, &credential)
            } else if let header = presented.header {
                outcome = unsafe authenticator.authorize(
                    routed, bytes, header: header, for: presented.facts, result: result, at: time, &credential)
            } else if let authorization = request.authorization, authenticator.dependsOnRequest(route.index) {
                outcome = unsafe authenticator.authorize(
                    routed, bytes, authorization: authorization, for: presented.facts, result: result, at: time,
                    &credential)
            } else {
                outcome = unsafe authenticator.authorize(
                    routed, bytes, authorization: request.authorization, result: result, at: time, &credential)
            }
            switch consume outcome {
            case .authorized(let authorized):
                var block = ByteBuffer()
                unsafe block.append(authorized.headers)
                return .authorized(headers: Self.lines(of: block))
            case .rejected(let rejection): return .rejected(rejection)
            case .pending(let verification): return .pending(verification)
            case .unproven: return .rejected(Rejection(.proofInvalid("auth.proof_missing")))
            }
        }
    }

    /// How the caller authenticates, for the report.
    private func form(of request: Request) -> RequestExplanation.CredentialForm {
        guard let authorization = request.authorization else { return .none }
        switch AuthorizationValue(request.bytes.span, authorization) {
        case .bearer(let range), .dpop(let range):
            let isOwn = unsafe request.bytes.withUnsafeBufferPointer { unsafe SessionPrefix.begins($0[range]) }
            return isOwn ? .session : .bearer
        case .basic: return .basic
        case .other, .malformed: return .other
        }
    }

    /// Reports the caller, and each of the route's conditions.
    private func explainPolicy(_ principal: Principal?, _ route: Route, _ explanation: inout RequestExplanation) {
        guard let principal else { return }
        explanation.principal = principal
        explanation.policy = route.policy.explain(principal, now: clock.unixTime)
    }

    /// Applies the policy to an assumed caller, as if they had presented a credential that the route accepts.
    func admitAssumed(_ assumed: AssumedCaller, _ route: Route, _ explanation: inout RequestExplanation) throws(Stop) {
        guard route.mode != .none else { return explainConstants(route, &explanation) }
        explanation.credential = .assumed
        let providers = route.providers.map { snapshot.providers[$0] }
        guard
            let handle = providers.first(where: { assumed.provider?.hasSameBytes(as: $0.name) ?? true })
        else { throw Stop(.credentialInvalid("auth.provider_not_on_route")) }
        explanation.provider = handle
        var assumed = assumed
        if assumed.subject == nil, snapshot.authentication.subjects != nil {
            explanation.isNewAccount = true
            assumed.subject = Self.newSubject
        }
        let principal = assumed.principal(by: handle.name)
        explainPolicy(principal, route, &explanation)
        if case .denied(let denial) = route.policy.evaluate(principal, now: clock.unixTime) {
            throw Stop(Failure(denial))
        }
        var block = ByteBuffer()
        let headers = snapshot.authentication.writeIdentityHeaders(
            of: principal, route: route.index, at: clock.unixTime, into: &block)
        explanation.droppedHeaders = headers.dropped
        explanation.headers = Self.lines(of: block)
    }

    private func explainConstants(_ route: Route, _ explanation: inout RequestExplanation) {
        var block = ByteBuffer()
        _ = snapshot.authentication.writeIdentityHeaders(
            of: nil, route: route.index, at: clock.unixTime, into: &block)
        explanation.headers = Self.lines(of: block)
    }

    private static func lines(of block: borrowing ByteBuffer) -> [String] {
        block.array.split(separator: 0x0A).map { line in
            String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        }
    }

    /// Verifies a credential with what the authenticator chose.
    private func verify(
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
