internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletProxy
internal import MartletRouter

/// An explanation as text: one label per phase, its lines aligned behind it.
///
/// Never shows the credential.
struct ExplanationPage {
    private static let labelWidth = 12

    let request: AskedRequest
    let explanation: RequestExplanation
    let configuration: GatewayConfiguration
    let routes: RouteTable

    init(_ request: AskedRequest, _ explanation: RequestExplanation, _ blueprint: Blueprint) {
        self.request = request
        self.explanation = explanation
        configuration = blueprint.configuration
        routes = blueprint.routes
    }

    var text: String {
        var text = Self.section("request", requestLines) + Self.section("path", pathLines)
        text += Self.section("route", routeLines) + Self.section("caller", callerLines)
        text +=
            Self.section("checks", Self.table(explanation.checks))
            + Self.section("policy", Self.table(explanation.policy))
        if explanation.upstreamPath != nil {
            text += Self.section("adds", addedLines) + Self.section("removes", removedLines)
            text += Self.section("upstream", upstreamLines) + Self.section("upgrades to", upgradeLines)
        }
        return text + Self.section("verdict", verdictLines)
    }

    // MARK: Phases

    private var requestLines: [String] {
        var words = ["without a credential"]
        if let token = request.token { words = ["with a bearer token of \(token.count) bytes"] }
        if request.assumed != nil { words = ["as the caller of the file, without a credential"] }
        if !request.fields.isEmpty { words.append("with \(request.fields.count) more header fields") }
        let host = request.host.map { " at \(Self.shown($0))" } ?? ""
        return [
            "\(Self.shown(request.method)) \(Self.shown(request.target))\(host), \(words.joined(separator: ", "))"
        ]
    }

    private var pathLines: [String] {
        guard let path = explanation.path else { return ["refused before any route was looked at"] }
        let received = request.target.utf8.prefix { $0 != UInt8(ascii: "?") }
        return path.utf8.elementsEqual(received) ? ["\(path) (as received)"] : ["\(path) (normalised)"]
    }

    private var routeLines: [String] {
        guard explanation.path != nil else { return [] }
        var lines = explanation.misses.map { miss in
            "not \(routes.routes[miss.route].name): its \(Self.part(miss.reason)) does not match"
        }
        lines.append(explanation.route.map { "\($0.name) takes it" } ?? "no route takes it")
        return lines
    }

    static func part(_ reason: RouteMiss.Reason) -> String {
        switch reason {
        case .host: "host"
        case .path: "path"
        case .method: "method"
        }
    }

    private var callerLines: [String] {
        guard let route = explanation.route else { return [] }
        let names = route.providers.filter { $0 < configuration.providers.count }
            .map { configuration.providers[$0].name.value }.joined(separator: " or ")
        var lines: [String]
        switch route.mode {
        case .none: return ["anybody; a credential is not looked at"]
        case .required: lines = ["must be proved by \(names)"]
        case .optional: lines = ["may be proved by \(names); a bad credential is refused all the same"]
        }
        if let provider = explanation.provider { lines.append("provider '\(provider.name)' (\(provider.kind)) judges") }
        if let health = explanation.health, health.state != .ready {
            lines.append("the provider is \(health.state.rawValue): \(Self.shown(health.detail))")
        }
        if let principal = explanation.principal {
            lines.append("is \(Self.shown(principal.subject))")
            if explanation.isNewAccount { lines.append("has no account yet: the first request makes one") }
        }
        return lines
    }

    // MARK: Upstream

    private var addedLines: [String] {
        let lines = explanation.headers + explanation.droppedHeaders.map { "(no \($0.name): \($0.reason))" }
        return lines.isEmpty ? ["no identity header"] : lines
    }

    private var removedLines: [String] {
        var lines = ["every X-Auth-* of the client's, in any spelling, on every route"]
        var own: [String] = []
        for header in configuration.routes.flatMap({ $0.setHeaders ?? [] }) {
            let name = header.name.value
            if !own.contains(where: { $0.lowercased() == name.lowercased() }) { own.append(name) }
        }
        own.removeAll { $0.lowercased().hasPrefix("x-auth-") }
        if !own.isEmpty {
            lines[0] = "every X-Auth-*, \(own.joined(separator: ", ")) of the client's, in any spelling, on every route"
        }
        if !explanation.removedFields.isEmpty {
            lines.append("of this request's own: \(explanation.removedFields.map(Self.shown).joined(separator: ", "))")
        }
        if let route = explanation.route {
            let removed = configuration.routes.first { $0.name.value.hasSameBytes(as: route.name) }?.removeHeaders ?? []
            if !removed.isEmpty { lines.append("\(removed.joined(separator: ", ")), by this route") }
            if explanation.consumesCredential, !route.forwardsCredentials {
                lines.append("Authorization, which is used up here")
            }
        }
        lines.append(
            "hop-by-hop fields; X-Forwarded-* and X-Request-Id are written anew, unless a trusted proxy sent them")
        return lines
    }

    private var upstreamLines: [String] {
        guard let route = explanation.route, configuration.upstreams.indices.contains(route.upstream),
            let path = explanation.upstreamPath
        else { return [] }
        let upstream = configuration.upstreams[route.upstream]
        let places = upstream.endpoints.map { EndpointText.url($0.value) }.joined(separator: ", ")
        let query = request.target.utf8.contains(UInt8(ascii: "?")) ? ", the query as received" : ""
        return ["\(upstream.name.value): \(places)"] + Self.wireLines(upstream)
            + ["\(Self.shown(request.method)) \(path)\(query)"]
    }

    /// How an upstream is spoken to, where that is not HTTP/1.1 in clear text.
    private static func wireLines(_ upstream: UpstreamConfiguration) -> [String] {
        var words: [String] = []
        let endpoints = upstream.endpoints.map(\.value)
        if endpoints.contains(where: { if case .h2c = $0 { true } else { upstream.wire.version == .h2 } }) {
            words.append("speaks HTTP/2")
        }
        if endpoints.contains(where: { if case .https = $0 { true } else { false } }), !upstream.wire.tls.verifies {
            words.append("its certificate is not verified")
        }
        if upstream.wire.sendsProxyProtocol { words.append("is told who connected by the PROXY protocol") }
        return words.isEmpty ? [] : [words.joined(separator: ", ")]
    }

    private var upgradeLines: [String] {
        guard let route = explanation.route, !route.upgrade.protocols.isEmpty,
            configuration.upstreams.indices.contains(route.upstream)
        else { return ["nothing"] }
        let upgrade = route.upgrade
        let idle = min(upgrade.idle, configuration.upstreams[route.upstream].timeouts.idle)
        var lines = [
            "\(upgrade.protocols.joined(separator: " or ")); ends after \(idle.configurationText) of silence"
        ]
        if let longest = upgrade.maximumConnectionAge { lines[0] += ", and \(longest.configurationText) in all" }
        guard explanation.principal != nil else { return lines }
        switch upgrade.closeOnExpiry {
        case .never: lines.append("goes on when the credential has expired or was revoked")
        case .after(.zero): lines.append("ends with the credential, as long answers do")
        case .after(let grace):
            lines.append("ends \(grace.configurationText) after the credential, as long answers do")
        }
        return lines
    }

    private var verdictLines: [String] {
        switch explanation.outcome {
        case .forwarded: return ["forwarded: the client gets what the upstream answers"]
        case .answeredHere: return ["answered by the gateway itself"]
        case .refused(let answer): return Self.lines(answer)
        case .undecidable(let answer, let because):
            return [because.isEmpty ? "undecidable" : "undecidable: \(Self.shown(because))"]
                + ["a gateway that cannot tell either answers"] + Self.lines(answer)
        }
    }

    private static func lines(_ answer: ClientAnswer) -> [String] {
        var lines = ["\(answer.status) \(answer.code), in the log \(answer.reason)"]
        lines += answer.challenges.map { "WWW-Authenticate: \($0)" }
        if let allow = answer.allow { lines.append("Allow: \(allow)") }
        return lines
    }

    // MARK: Text

    /// `ok   name    detail`, the names in a column.
    private static func table(_ verdicts: [CheckVerdict]) -> [String] {
        let width = min(verdicts.map(\.check.count).max() ?? 0, 48)
        return verdicts.map { verdict in
            let mark = verdict.failure == nil ? "ok  " : "FAIL"
            let code = verdict.failure.map { "[\($0)]" } ?? ""
            let tail = [shown(verdict.detail), code].filter { !$0.isEmpty }.joined(separator: " ")
            return tail.isEmpty
                ? "\(mark) \(shown(verdict.check))" : "\(mark) \(padded(shown(verdict.check), to: width))  \(tail)"
        }
    }

    private static func section(_ label: String, _ lines: [String]) -> String {
        lines.enumerated().map { padded($0.offset == 0 ? label : "", to: labelWidth) + $0.element + "\n" }.joined()
    }

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(width - text.count, 0))
    }

    /// A text that somebody else chose, without anything that a terminal would act upon.
    private static func shown(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }
}
