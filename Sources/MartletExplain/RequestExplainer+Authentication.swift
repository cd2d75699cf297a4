internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
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
        case unproven(ProofRequest)
    }

    func authorize(
        _ request: inout Request, _ route: Route, _ explanation: inout RequestExplanation
    ) async throws(Stop) {
        var reader = CredentialReader(route: route.index)
        let found = read(request, by: &reader)
        request.hasCookie = reader.hasCookie
        if reader.hasUnusableCookie { explanation.setCookies = deletions(request) }
        let presented: RequestCredential
        do throws(Failure) { presented = try found.get() } catch { throw Stop(error) }
        if route.mode != .none { explanation.credential = form(of: presented, request) }
        if case .none = presented, route.mode == .optional {
            explanation.policy = route.policy.explain(nil, now: clock.unixTime)
        }
        let facts = RequestFacts(
            method: String(decoding: request.method, as: UTF8.self),
            host: String(decoding: request.authority, as: UTF8.self), path: explanation.path ?? "",
            head: request.received)
        var authenticator = Authenticator(snapshot.authentication)
        var credential = CredentialState()
        credential.hasForeignKey = reader.hasForeignKey
        var outcome = decide(presented, request, facts, route, nil, &authenticator, &credential)
        var principal: Principal?
        if case .pending(let verification) = outcome {
            let result = try await verify(verification, facts, &explanation)
            principal = try? result.get().principal
            outcome = decide(
                presented, request, facts, route, BoxedVerificationResult(result), &authenticator, &credential)
        }
        if case .unproven(let proof) = outcome {
            if let failure = failure(of: proof, request) {
                throw Stop(failure, offersBasic: credential.offersBasic && !hidesBasic(request))
            }
            credential.proof = .held
            outcome = decide(
                presented, request, facts, route, BoxedVerificationResult(.success(proof.verified)), &authenticator,
                &credential)
        }
        if case .rejected(let rejection) = outcome,
            let response = response(to: rejection, request, route, isCookie: credential.isCookie)
        {
            switch response {
            case .rejection, .denial: break
            case .failure(let failure): outcome = .rejected(Rejection(failure, rejection.cause))
            case .anonymous:
                outcome = decide(.none, request, facts, route, nil, &authenticator, &credential)
                principal = nil
                if let cookies = snapshot.browser?.cookies { explanation.setCookies.append(cookies.session.deletion) }
            }
        }
        if credential.provider >= 0 { explanation.provider = snapshot.providers[Int(credential.provider)] }
        if case .authorized = outcome { explanation.droppedHeaders = authenticator.droppedHeaders }
        let offersBasic = credential.offersBasic && !hidesBasic(request)
        try conclude(outcome, principal, route, offersBasic: offersBasic, &explanation)
    }

    /// Records how a request was decided.
    private func conclude(
        _ outcome: Outcome, _ principal: Principal?, _ route: Route, offersBasic: Bool,
        _ explanation: inout RequestExplanation
    ) throws(Stop) {
        switch outcome {
        case .authorized(let headers):
            explainPolicy(principal, route, &explanation)
            explanation.headers = headers
            explanation.consumesCredential = principal != nil
        case .rejected(let rejection):
            if case .policy = rejection.cause { explainPolicy(principal, route, &explanation) }
            var cause = ""
            if case .verification(let error, _) = rejection.cause { cause = error.cause.map { "\($0)" } ?? "" }
            throw Stop(rejection.failure, cause: cause, offersBasic: offersBasic)
        // The result of a verification is void only after a reload or a revocation.
        case .pending, .unproven: throw Stop(.authUnavailable("auth.verdict_overtaken"))
        }
    }

    /// Finds the credential, as a loop does.
    private func read(
        _ request: Request, by reader: inout CredentialReader
    ) -> Result<RequestCredential, Failure> {
        var head = head(of: request)
        return unsafe request.bytes.withUnsafeBufferPointer { bytes in
            do throws(Failure) {
                return .success(unsafe try reader.read(&head, bytes, from: request.client, snapshot))
            } catch {
                return .failure(error)
            }
        }
    }

    /// What a browser gets whose caller was rejected; `nil` for every other request.
    private func response(
        to rejection: Rejection, _ request: Request, _ route: Route, isCookie: Bool
    ) -> BrowserRules.NavigationResponse? {
        let head = head(of: request)
        guard let browser = snapshot.browser,
            NavigationRule.isNavigation(request.bytes.span, head.fields, method: head.method)
        else { return nil }
        return browser.response(
            to: rejection, isCookie: isCookie, isOptional: route.mode == .optional, on: route.index,
            target: request.path + request.query, check: request.client.check)
    }

    /// The values of `Set-Cookie` that delete cookies of no use.
    private func deletions(_ request: Request) -> [String] {
        guard let cookies = snapshot.browser?.cookies else { return [] }
        let head = head(of: request)
        return cookies.find(in: request.bytes.span, head.fields).unusable.map { cookies.deletion(of: $0) }
    }

    private func hidesBasic(_ request: Request) -> Bool {
        let head = head(of: request)
        return snapshot.browser?.hidesBasic(request.bytes.span, head.fields) ?? false
    }

    /// Calls the authenticator, as a loop does.
    private func decide(
        _ presented: RequestCredential, _ request: Request, _ facts: RequestFacts, _ route: Route,
        _ result: BoxedVerificationResult?, _ authenticator: inout Authenticator, _ credential: inout CredentialState
    ) -> Outcome {
        let time = LoopTime(monotonic: clock.monotonicTime.nanoseconds, unix: clock.unixTime.seconds)
        return unsafe request.bytes.withUnsafeBufferPointer { bytes in
            let exchange = ExchangeID(raw: 0)
            guard let routed = RoutedRequest(exchange: exchange, route: route.index, mount: route.mount) else {
                return .rejected(Rejection(.noRoute))
            }
            let outcome = unsafe authenticator.authorize(
                routed, bytes, presenting: presented, for: facts, result: result, at: time, &credential)
            switch consume outcome {
            case .authorized(let authorized):
                var block = ByteBuffer()
                unsafe block.append(authorized.headers)
                return .authorized(headers: Self.lines(of: block))
            case .rejected(let rejection): return .rejected(rejection)
            case .pending(let verification): return .pending(verification)
            case .unproven(let proof): return .unproven(proof)
            }
        }
    }

    /// Why a credential is not proved to be the client's. The proof of a key is not looked at: that would use it up.
    private func failure(of proof: ProofRequest, _ request: Request) -> Failure? {
        let head = head(of: request)
        if let expected = proof.binding.certificateThumbprint,
            let failure = unsafe request.bytes.withUnsafeBufferPointer({
                unsafe request.client.failure(expecting: expected, in: head, $0)
            })
        {
            return failure
        }
        return proof.binding.keyThumbprint == nil ? nil : .proofInvalid("auth.proof_missing")
    }

    /// How the caller authenticates, for the report.
    private func form(of presented: RequestCredential, _ request: Request) -> RequestExplanation.CredentialForm {
        switch presented {
        case .none: return .none
        case .header: return .header
        case .cookie: return .cookie
        case .certificate: return .certificate
        case .authorization(let authorization):
            switch AuthorizationValue(request.bytes.span, authorization) {
            case .bearer(let range), .dpop(let range):
                let isOwn = unsafe request.bytes.withUnsafeBufferPointer { unsafe SessionPrefix.begins($0[range]) }
                return isOwn ? .session : .bearer
            case .basic: return .basic
            case .other, .malformed: return .other
            }
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
}
