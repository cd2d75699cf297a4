internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletConfig
package import MartletCore
package import MartletDecisions
internal import MartletHTTP
internal import MartletProvider
internal import MartletProxy
internal import MartletResponder
internal import MartletRouter

/// Takes a request through its phases without forwarding it, and records the outcome of each.
///
/// The parser, the path rules, the route table, the provider, the policy and the header templates are those of the
/// request path, and who may pass is decided by the same ``Authenticator``.
package struct RequestExplainer: Sendable {
    /// How long a verification may take.
    static let timeout = Duration.seconds(10)

    let snapshot: Snapshot
    let clock: Clock
    let sharesSessions: Bool
    let hasAccounts: Bool

    /// - Parameters:
    ///   - sharesSessions: whether its session store is that of running gateways; otherwise a session token is
    ///     undecidable.
    ///   - hasAccounts: `false` where the account store is known to be empty, so that it need not be queried.
    package init(_ snapshot: Snapshot, clock: Clock, sharesSessions: Bool = true, hasAccounts: Bool = true) {
        self.snapshot = snapshot
        self.clock = clock
        self.sharesSessions = sharesSessions
        self.hasAccounts = hasAccounts
    }

    /// Explains a request; starts, calls and stops the provider of its credential.
    package func explain(_ input: ExplainedRequest) async -> RequestExplanation {
        var explanation = RequestExplanation()
        do throws(Stop) {
            let received = try read(input)
            if received.path == input.listener.healthPath {
                explanation.path = String(decoding: received.path, as: UTF8.self)
                explanation.outcome = .answeredLocally
                return explanation
            }
            if let port = input.listener.redirectPort { throw Stop(try redirect(received, to: port)) }
            if let failure = snapshot.routes.rejection(ofUnusual: head(of: received), received.bytes.span) {
                throw Stop(failure)
            }
            let path = try normalized(received)
            explanation.path = String(decoding: path, as: UTF8.self)
            if let outcome = try preflight(received, path, &explanation) {
                explanation.outcome = outcome
                return explanation
            }
            let route = try route(received, path, &explanation)
            if let rules = snapshot.routeRules[route.index].crossOrigin {
                explanation.crossOrigin = fields(of: rules, received)
            }
            var request = try limited(received, by: route)
            guard route.mount < 0 else {
                explanation.outcome = .answeredLocally
                return explanation
            }
            if let assumed = input.assumed {
                try admitAssumed(assumed, route, &explanation)
            } else {
                try await authorize(&request, route, &explanation)
            }
            if let response = route.response {
                explanation.outcome = try outcome(of: response, request, path)
                return explanation
            }
            try explainUpstream(request, path, route, &explanation)
        } catch {
            let response = ClientResponse(
                error.failure, offersBasic: error.offersBasic, setCookies: explanation.setCookies)
            explanation.outcome =
                error.failure.status == 503 ? .undecidable(response, because: error.cause) : .refused(response)
        }
        return explanation
    }

    // MARK: Codec

    private func read(_ input: ExplainedRequest) throws(Stop) -> Request {
        try Self.rejectLineBreaks(input)
        let bytes = Self.head(of: input)
        var head = RequestHead(maximumFields: snapshot.limits.headerFields)
        var parser = RequestParser(maximumHeadBytes: snapshot.limits.headerBytes)
        switch parser.parse(bytes.span, into: &head) {
        case .failure(let failure): throw Stop(.head(failure))
        case .needMore: throw Stop(.head(.badRequestLine))
        case .complete: break
        }
        let certificate = input.certificate.map { ClientCertificateBytes(der: $0) }
        var client = ClientSide(isSecure: input.listener.isSecure, isTrusted: false)
        unsafe client.certificate = certificate
        let received = unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe client.receivedHead(head, bytes, trusting: [])
        }
        return Request(
            method: Array(bytes[head.methodText.bounds]), authority: Array(bytes[head.authority.bounds]),
            path: Array(bytes[head.path.bounds]),
            query: Array(bytes[head.query.bounds]), bytes: bytes,
            fields: (0..<head.fields.count).map { head.fields[$0] }, received: received, client: client,
            certificate: certificate)
    }

    /// The redirect of a listener that serves no requests.
    private func redirect(_ request: Request, to port: UInt16) throws(Stop) -> Failure {
        let head = head(of: request)
        guard head.method != .connect, !head.isAsteriskForm else { return .noRoute }
        let path = try normalized(request)
        guard !request.authority.isEmpty else { return .head(.hostMissing) }
        return .movedToHTTPS(authority: request.authority, path: path, query: request.query, port: port)
    }

    /// A line break would inject another head line.
    private static func rejectLineBreaks(_ input: ExplainedRequest) throws(Stop) {
        func isBroken(_ bytes: some Sequence<UInt8>) -> Bool { bytes.contains { $0 == 0x0A || $0 == 0x0D } }
        if isBroken(input.method.utf8) || isBroken(input.target.utf8) { throw Stop(.head(.badRequestLine)) }
        if isBroken((input.host ?? "").utf8) { throw Stop(.head(.badHost)) }
        for secret in input.fields + [input.token].compactMap(\.self) where secret.withBytes({ isBroken($0) }) {
            throw Stop(.head(.badFieldValue))
        }
    }

    private static func head(of input: ExplainedRequest) -> [UInt8] {
        var bytes = Array("\(input.method) \(input.target) HTTP/1.1\r\n".utf8)
        if let host = input.host { bytes += Array("Host: \(host)\r\n".utf8) }
        for field in input.fields { bytes += field.withBytes { $0 } + [0x0D, 0x0A] }
        if let token = input.token {
            bytes += Array("Authorization: Bearer ".utf8) + token.withBytes { $0 } + [0x0D, 0x0A]
        }
        bytes += [0x0D, 0x0A]
        var encoded = ByteBuffer()
        return TargetEncoding.encodeRequestLine(of: bytes.span, into: &encoded) ? encoded.array : bytes
    }

    // MARK: Router

    private func normalized(_ request: Request) throws(Stop) -> [UInt8] {
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
        var head = head(of: request)
        explanation.misses = routes.misses(
            method: request.method.span, authority: request.authority.span, path: path.span,
            unmet: { routes.unmetCondition(of: $0, &head, request.bytes.span) })
        let found = routes.match(method: request.method.span, authority: request.authority.span, path: path.span)
        switch routes.resolve(found, &head, request.bytes.span, path: path.span) {
        case .route(let index):
            explanation.route = routes.routes[index]
            return routes.routes[index]
        case .methodNotAllowed(let allowed): throw Stop(.methodNotAllowed(routes.allowValue(allowed)))
        case .none: throw Stop(.noRoute)
        case .failed: throw Stop(.matchFailed)
        }
    }

    /// The response that the route has itself.
    private func outcome(
        of response: RouteResponse, _ request: Request, _ path: [UInt8]
    ) throws(Stop) -> RequestExplanation.Outcome {
        let sent = response.response(
            authority: request.authority.span, path: path.span, query: request.query.span)
        guard let sent else { throw Stop(.malformed(.badRedirect)) }
        return .responded(status: sent.status, location: sent.fields.first { $0.name == "Location" }?.value)
    }

    // MARK: Upstream

    private func explainUpstream(
        _ request: Request, _ path: [UInt8], _ route: Route, _ explanation: inout RequestExplanation
    ) throws(Stop) {
        explanation.upstream = upstream(of: route, explanation)
        explanation.removedFields = try removedFields(request, path, route, explanation)
        explanation.upstreamPath = try upstreamPath(path, route)
    }

    /// The upstream that the request is sent to, if that does not depend on more than the explanation knows.
    private func upstream(of route: Route, _ explanation: RequestExplanation) -> Int? {
        guard route.split != nil else { return route.upstream }
        // The subject of an account is known once it exists.
        guard let principal = explanation.principal, !explanation.isNewAccount else { return nil }
        return route.upstream(for: SubjectRevocationID.of(principal.subject))
    }

    private func upstreamPath(_ path: [UInt8], _ route: Route) throws(Stop) -> String {
        if let rewrite = route.rewrite {
            guard let target = rewrite.target(path: path.span, query: [UInt8]().span) else {
                throw Stop(.malformed(.rewriteRejected))
            }
            return String(decoding: target, as: UTF8.self)
        }
        let rewrite = route.rewrite(path: path.span)
        return rewrite.becomesRoot ? "/" : String(decoding: path.dropFirst(rewrite.strippedBytes), as: UTF8.self)
    }

    /// The names of the client's fields that the upstream does not get, or that a proxy which asks has to hold back. A
    /// credential that is consumed is reported separately, and the upstream gets a `Host` in any case.
    private func removedFields(
        _ request: Request, _ path: [UInt8], _ route: Route, _ explanation: RequestExplanation
    ) throws(Stop) -> [String] {
        let isConsumed = explanation.consumesCredential
        var written: ExplainedHead?
        if !route.servesChecksOnly {
            var head = head(of: request)
            do throws(Failure) {
                written = try ExplainedHead(
                    &head, request.bytes, path: path, route: route.index,
                    upstream: explanation.upstream ?? route.upstream, consumesCredential: isConsumed,
                    hasCookie: request.hasCookie, isSecure: request.client.isSecure, snapshot)
            } catch {
                throw Stop(error)
            }
        }
        return request.fields.compactMap { field in
            guard field.known != .host, field.known != .authorization || !isConsumed else { return nil }
            let isRemoved =
                written.map { !$0.has(field, request.bytes) }
                ?? ExplainedHead.isForNoAPI(
                    field, request.bytes, route: route.index, consumesCredential: isConsumed, snapshot)
            return isRemoved ? String(decoding: request.bytes[field.name.bounds], as: UTF8.self) : nil
        }
    }
}
