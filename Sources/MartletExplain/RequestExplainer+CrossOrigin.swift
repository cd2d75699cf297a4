internal import MartletConfig
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletRouter

/// Requests of pages of other origins.
extension RequestExplainer {
    /// The outcome of a preflight of a route with `cors`; `nil` for every other request.
    func preflight(
        _ request: Request, _ path: [UInt8], _ explanation: inout RequestExplanation
    ) throws(Stop) -> RequestExplanation.Outcome? {
        let (routes, bytes) = (snapshot.routes, request.bytes.span)
        var head = head(of: request)
        guard head.method == .options, routes.hasCrossOrigin,
            let method = CrossOriginRules.requestedMethod(head.fields, bytes),
            let index = routes.preflightRoute(
                method: bytes.extracting(method.bounds), &head, bytes, path: path.span),
            let rules = snapshot.routeRules[index].crossOrigin
        else { return nil }
        explanation.misses = routes.misses(
            method: bytes.extracting(method.bounds), authority: request.authority.span, path: path.span,
            unmet: { routes.unmetCondition(of: $0, &head, request.bytes.span) }
        ).filter { $0.route < index }
        explanation.route = routes.routes[index]
        let fields = fields(of: rules, request)
        explanation.crossOrigin = fields
        _ = try limited(request, by: routes.routes[index])
        explanation.preflightFields = rules.preflightFields(isAllowed: fields.isAllowed).map {
            "\($0.name): \($0.value)"
        }
        return .preflight(isAllowed: fields.isAllowed)
    }

    /// What the response tells the page.
    func fields(of rules: CrossOriginRules, _ request: Request) -> CrossOriginFields {
        rules.fields(for: head(of: request).fields, request.bytes.span)
    }

    /// The head, parsed again.
    func head(of request: Request) -> RequestHead {
        var head = RequestHead(maximumFields: snapshot.limits.headerFields)
        var parser = RequestParser(maximumHeadBytes: snapshot.limits.headerBytes)
        _ = parser.parse(request.bytes.span, into: &head)
        return head
    }

    /// Applies the limits of the route that the head alone decides.
    /// - Returns: the request, with what it upgrades to.
    func limited(_ request: Request, by route: Route) throws(Stop) -> Request {
        let head = head(of: request)
        if case .length(let count) = head.framing, count > route.bodyLimit ?? .max { throw Stop(.bodyTooLarge) }
        guard !head.upgrade.isEmpty else { return request }
        var request = request
        let offer = UpgradeOffer.read(
            head, request.bytes.span, allowed: route.upgrade.protocols, isConnect: false)
        switch offer {
        case .none: break
        case .accepted: request.client.opensWebSocket = true
        case .rejected(let failure): throw Stop(failure)
        }
        return request
    }
}
