internal import MartletConfig
package import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter

/// Walks a request through the phases of its life without forwarding it, and writes down what each of them says.
///
/// The parser, the path rules, the route table, the provider, the policy and the header templates are those of the request
/// path; only the order in which they are asked is told here once more (see `Worker+Admission`).
package struct RequestExplainer: Sendable {
    /// A request that goes no further.
    private struct Stop: Error {
        let failure: Failure
        /// What could not be asked, where that is why.
        let cause: String

        init(_ failure: Failure, cause: String = "") {
            self.failure = failure
            self.cause = cause
        }

        init(_ error: AuthenticationError) {
            self.init(.authentication(error), cause: error.cause.map { "\($0)" } ?? "")
        }
    }

    /// A head as far as the phases need it.
    private struct Request {
        let method: [UInt8]
        let isNeverAllowed: Bool
        let authority: [UInt8]
        let path: [UInt8]
        let credential: Presented
        let bytes: [UInt8]
        let fields: [HeadField]
    }

    /// What stands in `Authorization`.
    private enum Presented {
        case nothing
        case bearer(Secret)
        case basic(Secret)
        case otherScheme
        case malformed
    }

    /// How long a verdict may take.
    private static let patience = Duration.seconds(10)

    private let snapshot: Snapshot
    private let clock: Clock
    private let sharesSessions: Bool
    private let hasAccounts: Bool

    /// - Parameters:
    ///   - sharesSessions: whether the sessions that it asks about are those of running gateways; else a session token is
    ///     undecidable.
    ///   - hasAccounts: `false` where the account store is known to be empty, so that nobody need ask it.
    package init(_ snapshot: Snapshot, clock: Clock, sharesSessions: Bool = true, hasAccounts: Bool = true) {
        self.snapshot = snapshot
        self.clock = clock
        self.sharesSessions = sharesSessions
        self.hasAccounts = hasAccounts
    }

    /// Explains a request; starts, asks and ends the provider that its credential is for.
    package func explain(_ asked: AskedRequest) async -> RequestExplanation {
        var explanation = RequestExplanation()
        var offersBasic = false
        do throws(Stop) {
            let request = try read(asked)
            let path = try normalized(request)
            explanation.path = String(decoding: path, as: UTF8.self)
            let route = try route(request, path, &explanation)
            guard route.mount < 0 else {
                explanation.outcome = .answeredHere
                return explanation
            }
            offersBasic = snapshot.facts[route.index].takesBasic
            if let assumed = asked.assumed {
                try admit(assumed, route, &explanation)
            } else {
                try await authorize(request, route, &explanation)
            }
            explanation.removedFields = removedFields(request, route, explanation.consumesCredential)
            explanation.upstreamPath = upstreamPath(path, route)
        } catch {
            let answer = ClientAnswer(error.failure, offersBasic: offersBasic)
            explanation.outcome =
                error.failure.status == 503 ? .undecidable(answer, because: error.cause) : .refused(answer)
        }
        return explanation
    }

    // MARK: Codec

    private func read(_ asked: AskedRequest) throws(Stop) -> Request {
        try Self.refuseLineBreaks(asked)
        let bytes = Self.head(of: asked)
        var head = RequestHead(maximumFields: snapshot.limits.headerFields)
        var parser = RequestParser(maximumHeadBytes: snapshot.limits.headerBytes)
        switch parser.parse(bytes.span, into: &head) {
        case .failure(let failure): throw Stop(.head(failure))
        case .needMore: throw Stop(.head(.badRequestLine))
        case .complete: break
        }
        var presented = Presented.nothing
        if head.authorization >= 0 {
            switch AuthorizationValue(bytes.span, head.fields[head.authorization].value) {
            case .bearer(let range): presented = .bearer(Secret(Array(bytes[range.bounds])))
            case .basic(let range): presented = .basic(Secret(Array(bytes[range.bounds])))
            case .other: presented = .otherScheme
            case .malformed: presented = .malformed
            }
        }
        return Request(
            method: Array(bytes[head.methodText.bounds]),
            isNeverAllowed: head.method == .connect || head.method == .trace,
            authority: Array(bytes[head.authority.bounds]), path: Array(bytes[head.path.bounds]), credential: presented,
            bytes: bytes, fields: (0..<head.fields.count).map { head.fields[$0] })
    }

    /// A line break would make another head of it than the one that was meant.
    private static func refuseLineBreaks(_ asked: AskedRequest) throws(Stop) {
        func isBroken(_ bytes: some Sequence<UInt8>) -> Bool { bytes.contains { $0 == 0x0A || $0 == 0x0D } }
        if isBroken(asked.method.utf8) || isBroken(asked.target.utf8) { throw Stop(.head(.badRequestLine)) }
        if isBroken((asked.host ?? "").utf8) { throw Stop(.head(.badHost)) }
        for secret in asked.fields + [asked.token].compactMap(\.self) where secret.withBytes({ isBroken($0) }) {
            throw Stop(.head(.badFieldValue))
        }
    }

    private static func head(of asked: AskedRequest) -> [UInt8] {
        var bytes = Array("\(asked.method) \(asked.target) HTTP/1.1\r\n".utf8)
        if let host = asked.host { bytes += Array("Host: \(host)\r\n".utf8) }
        for field in asked.fields { bytes += field.withBytes { $0 } + [0x0D, 0x0A] }
        if let token = asked.token {
            bytes += Array("Authorization: Bearer ".utf8) + token.withBytes { $0 } + [0x0D, 0x0A]
        }
        return bytes + [0x0D, 0x0A]
    }

    // MARK: Router

    private func normalized(_ request: Request) throws(Stop) -> [UInt8] {
        if request.isNeverAllowed { throw Stop(.methodNeverAllowed) }
        if snapshot.routes.hasMethodInOtherCase(request.method.span) { throw Stop(.head(.methodCase)) }
        var buffer = ByteBuffer()
        switch PathNormalizer.normalize(
            request.path.span, keepsEncodedSlash: snapshot.paths.keepsEncodedSlash,
            keepsEncodedPercent: snapshot.paths.keepsEncodedPercent, mergesSlashes: snapshot.paths.mergesSlashes,
            into: &buffer)
        {
        case .unchanged: return request.path
        case .rewritten: return buffer.array
        case .failure(let failure): throw Stop(.head(failure))
        }
    }

    private func route(
        _ request: Request, _ path: [UInt8], _ explanation: inout RequestExplanation
    ) throws(Stop) -> Route {
        let routes = snapshot.routes
        explanation.misses = routes.misses(
            method: request.method.span, authority: request.authority.span, path: path.span)
        switch routes.match(method: request.method.span, authority: request.authority.span, path: path.span) {
        case .route(let index):
            explanation.route = routes.routes[index]
            return routes.routes[index]
        case .methodNotAllowed(let allowed): throw Stop(.methodNotAllowed(routes.allowValue(allowed)))
        case .none: throw Stop(.noRoute)
        case .failed: throw Stop(.matchFailed)
        }
    }

    private func upstreamPath(_ path: [UInt8], _ route: Route) -> String {
        let rewrite = route.rewrite(path: path.span)
        return rewrite.becomesRoot ? "/" : String(decoding: path.dropFirst(rewrite.strippedBytes), as: UTF8.self)
    }

    // MARK: Authenticator, policy, header injection

    private func authorize(
        _ request: Request, _ route: Route, _ explanation: inout RequestExplanation
    ) async throws(Stop) {
        guard route.mode != .none else { return }
        switch request.credential {
        case .nothing:
            guard route.mode == .optional else { throw Stop(.credentialMissing) }
            explanation.policy = route.policy.explain(nil, now: clock.unixTime)
            if case .denied = route.policy.judge(nil, now: clock.unixTime) { throw Stop(.credentialMissing) }
            render(route, &explanation)
        case .otherScheme:
            explanation.credential = .other
            throw Stop(.credentialInvalid("auth.scheme_not_accepted"))
        case .malformed:
            explanation.credential = .other
            throw Stop(.credentialInvalid("auth.malformed_authorization"))
        case .bearer(let token):
            let principal = try await authenticate(token, route, &explanation)
            try admit(principal, route, &explanation)
            explanation.consumesCredential = true
        case .basic(let pair):
            explanation.credential = .basic
            guard let handle = basicProvider(of: route) else {
                throw Stop(.credentialInvalid("auth.scheme_not_accepted"))
            }
            let principal = try await prove(pair.withBytes { Credential(basic: $0) }, handle, &explanation)
            try admit(principal, route, &explanation)
            explanation.consumesCredential = true
        }
    }

    /// Lets a proven caller through the policy, and writes the headers about them.
    private func admit(
        _ principal: Principal, _ route: Route, _ explanation: inout RequestExplanation
    ) throws(Stop) {
        explanation.principal = principal
        explanation.policy = route.policy.explain(principal, now: clock.unixTime)
        if case .denied(let reason) = route.policy.judge(principal, now: clock.unixTime) {
            throw Stop(.notAllowed(reason))
        }
        render(route, &explanation)
    }

    /// The same for a caller without a credential: as if they had shown one that the route takes.
    private func admit(
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

    private func authenticate(
        _ token: Secret, _ route: Route, _ explanation: inout RequestExplanation
    ) async throws(Stop) -> Principal {
        let plan = snapshot.plans[Int(snapshot.planOfRoute[route.index])]
        let bytes = token.withBytes { $0 }
        if unsafe bytes.withUnsafeBufferPointer({ unsafe OwnToken.isOne($0) }) {
            explanation.credential = .session
            return try await judgeSession(Credential(bearer: bytes), route, &explanation)
        }
        explanation.credential = .bearer
        guard route.credentials.contains(.direct) else {
            throw Stop(.credentialInvalid("auth.direct_not_accepted"))
        }
        guard let index = ProviderChoice.pick(bytes, among: plan.providers, of: snapshot.providers) else {
            throw Stop(.credentialInvalid("auth.no_provider_claims_it"))
        }
        return try await prove(Credential(bearer: bytes), snapshot.providers[Int(index)], &explanation)
    }

    /// The provider that judges names and passwords on a route.
    private func basicProvider(of route: Route) -> ProviderHandle? {
        guard snapshot.facts[route.index].takesBasic else { return nil }
        return route.providers.map { snapshot.providers[$0] }.first { $0.accepts.contains(.basic) }
    }

    /// Starts, asks and ends a provider; the subject is that of the identity's account.
    private func prove(
        _ credential: Credential, _ handle: ProviderHandle, _ explanation: inout RequestExplanation
    ) async throws(Stop) -> Principal {
        explanation.provider = handle
        await handle.running?.start()
        let verdict = await judge(credential, handle, &explanation)
        explanation.health = handle.reporting?.health
        await handle.running?.shutdown()
        let identity: Identity
        switch verdict {
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

    /// Stands for the subject of an account that is not made yet.
    package static let newSubject = "usr_(new)"

    private func judgeSession(
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

    private var context: AuthenticationContext {
        AuthenticationContext(now: clock.unixTime, deadline: clock.monotonicTime + Self.patience)
    }

    private func judge(
        _ credential: Credential, _ handle: ProviderHandle, _ explanation: inout RequestExplanation
    ) async -> Result<Identity, AuthenticationError> {
        guard let authenticating = handle.authenticating else {
            return .failure(.rejected("auth.provider_takes_no_credential"))
        }
        let context = context
        let verdict: Result<Identity, AuthenticationError>
        do throws(AuthenticationError) {
            verdict = .success(try await authenticating.authenticate(credential, in: context))
        } catch {
            verdict = .failure(error)
        }
        if let explaining = handle.explaining {
            explanation.checks = await explaining.explain(credential, in: context)
        } else {
            var failure: ErrorCode?
            if case .failure(let error) = verdict { failure = error.code }
            explanation.checks = [CheckVerdict(check: "credential", failure: failure, detail: "")]
        }
        return verdict
    }

    private func render(_ route: Route, _ explanation: inout RequestExplanation) {
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

    // MARK: Upstream

    /// The names of the client's own fields that the upstream does not get.
    private func removedFields(_ request: Request, _ route: Route, _ isConsumed: Bool) -> [String] {
        var rules = snapshot.facts[route.index].rewriting
        if !isConsumed { rules.remove(.dropsAuthorization) }
        var rewriter = RequestRewriter(rules)
        return unsafe request.bytes.withUnsafeBufferPointer { bytes in
            request.fields.compactMap { field in
                // The credential has a word of its own, and the upstream gets a `Host` in any case.
                guard field.known != .host, field.known != .authorization,
                    unsafe !rewriter.keeps(field, bytes, snapshot, route.index)
                else { return nil }
                return unsafe String(decoding: bytes[field.name], as: UTF8.self)
            }
        }
    }
}
