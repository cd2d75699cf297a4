internal import MartletConfig
internal import MartletHTTP
internal import MartletRouter

/// Requests of pages of other origins.
extension RequestExplainer {
    /// The outcome of a preflight of a route with `cors`; `nil` for every other request.
    func preflight(
        _ request: Request, _ path: [UInt8], _ explanation: inout RequestExplanation
    ) -> RequestExplanation.Outcome? {
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
        let (names, isAllowed) = fields(of: rules, request)
        explanation.crossOriginFields =
            names + rules.preflightFields(isAllowed: isAllowed).map { "\($0.name): \($0.value)" }
        return .preflight(isAllowed: isAllowed)
    }

    /// What the response tells the page, as lines.
    func fields(of rules: CrossOriginRules, _ request: Request) -> (names: [String], isAllowed: Bool) {
        let head = head(of: request)
        let fields = rules.fields(for: head.fields, request.bytes.span)
        return (fields.texts, fields.isAllowed)
    }

    /// The head, parsed again.
    func head(of request: Request) -> RequestHead {
        var head = RequestHead(maximumFields: snapshot.limits.headerFields)
        var parser = RequestParser(maximumHeadBytes: snapshot.limits.headerBytes)
        _ = parser.parse(request.bytes.span, into: &head)
        return head
    }
}
