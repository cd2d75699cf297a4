internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
package import MartletExplain
internal import MartletProvider
internal import MartletProxy
internal import MartletRouter

/// An explanation as text: one label per phase, followed by its aligned lines; it never shows the credential.
package struct ExplanationPage {
    private static let labelWidth = 12

    let request: ExplainedRequest
    let explanation: RequestExplanation
    let configuration: GatewayConfiguration
    let routes: RouteTable

    package init(_ request: ExplainedRequest, _ explanation: RequestExplanation, _ blueprint: Blueprint) {
        self.request = request
        self.explanation = explanation
        configuration = blueprint.configuration
        routes = blueprint.routes
    }

    package var text: String {
        var text = Self.section("request", requestLines) + Self.section("path", pathLines)
        text += Self.section("route", routeLines) + Self.section("limits", limitLines)
        text += Self.section("caller", callerLines)
        text +=
            Self.section("checks", Self.table(explanation.checks))
            + Self.section("policy", Self.table(explanation.policy))
        if explanation.upstreamPath != nil {
            text += Self.section("adds", addedLines) + Self.section("removes", removedLines)
            text += Self.section("upstream", upstreamLines) + Self.section("upgrades to", upgradeLines)
        }
        text += Self.section("response", responseLines)
        return text + Self.section("decision", decisionLines)
    }

    // MARK: Phases

    private var requestLines: [String] {
        var words: [String] = []
        if let token = request.token { words = ["with a bearer token of \(token.count) bytes"] }
        if request.assumed != nil { words = ["as the caller of the --as file, without a credential"] }
        // Any field may be the credential, so nothing is said about one.
        let names = request.fields.map { line in line.withBytes { Self.fieldName($0) } }
        if !names.isEmpty { words.append("with \(names.joined(separator: ", "))") }
        if words.isEmpty { words = ["without a credential"] }
        let host = request.host.map { " at \(Self.shown($0))" } ?? ""
        return [
            "\(Self.shown(request.method)) \(Self.shown(request.target))\(host), \(words.joined(separator: ", "))"
        ]
    }

    /// What stands before the colon of a header line; never a part of its value.
    private static func fieldName(_ line: [UInt8]) -> String {
        line.firstIndex(of: UInt8(ascii: ":")).map { shown(String(decoding: line[..<$0], as: UTF8.self)) } ?? "?"
    }

    private var pathLines: [String] {
        guard let path = explanation.path else { return ["rejected before routing"] }
        let received = request.target.utf8.prefix { $0 != UInt8(ascii: "?") }
        return path.utf8.elementsEqual(received) ? ["\(path) (as received)"] : ["\(path) (normalized)"]
    }

    private var routeLines: [String] {
        guard explanation.path != nil else { return [] }
        var lines = explanation.misses.map { miss in
            "not \(routes.routes[miss.route].name): its \(Self.part(miss.reason)) does not match"
        }
        if let route = explanation.route {
            lines.append("\(route.name) matches")
        } else if case .answeredLocally = explanation.outcome {
            lines.append("none: the listener itself responds to health checks")
        } else {
            lines.append("no route matches")
        }
        return lines
    }

    static func part(_ reason: RouteMiss.Reason) -> String {
        switch reason {
        case .host: "host"
        case .path: "path"
        case .method: "method"
        case .header: "header"
        case .query: "query"
        }
    }

    private var callerLines: [String] {
        guard let route = explanation.route else { return [] }
        guard route.mount < 0 else { return ["decided by the gateway's own endpoint, which checks credentials itself"] }
        let names = route.providers.filter { $0 < configuration.providers.count }
            .map { configuration.providers[$0].name.value }.joined(separator: " or ")
        var lines: [String]
        switch route.mode {
        case .none: return ["any client; credentials are ignored"]
        case .required: lines = ["must be authenticated by \(names)"]
        case .optional: lines = ["may be authenticated by \(names); an invalid credential is rejected"]
        }
        if let provider = explanation.provider {
            lines.append("provider '\(provider.name)' (\(provider.kind)) verifies the credential")
        }
        if let health = explanation.health, health.state != .ready {
            lines.append("the provider is \(health.state.rawValue): \(Self.shown(health.detail))")
        }
        if let principal = explanation.principal {
            lines.append("is \(Self.shown(principal.subject))")
            if explanation.isNewAccount { lines.append("has no account yet: the first request creates one") }
        }
        return lines
    }

    // MARK: Upstream

    private var addedLines: [String] {
        let lines = explanation.headers + explanation.droppedHeaders.map { "(no \($0.name): \($0.reason))" }
        return lines.isEmpty ? ["no identity headers"] : lines
    }

    private var removedLines: [String] {
        var lines = ["every X-Auth-* header of the client, in any spelling, on every route"]
        var own: [String] = []
        for header in configuration.routes.flatMap({ $0.setHeaders ?? [] }) {
            let name = header.name.value
            if !own.contains(where: { $0.lowercased() == name.lowercased() }) { own.append(name) }
        }
        own.removeAll { $0.lowercased().hasPrefix("x-auth-") }
        if !own.isEmpty {
            lines[0] =
                "every X-Auth-*, \(own.joined(separator: ", ")) header of the client, in any spelling, on every route"
        }
        if !explanation.removedFields.isEmpty {
            lines.append("of this request: \(explanation.removedFields.map(Self.shown).joined(separator: ", "))")
        }
        if let route = explanation.route {
            let removed = configuration.routes.first { $0.name.value.hasSameBytes(as: route.name) }?.removeHeaders ?? []
            if !removed.isEmpty { lines.append("\(removed.joined(separator: ", ")), by this route") }
            if explanation.consumesCredential, !route.forwardsCredentials {
                lines.append("Authorization, which the gateway consumes")
            }
        }
        lines.append(
            "hop-by-hop headers; X-Forwarded-* and X-Request-Id are replaced, unless a trusted proxy sent them")
        return lines
    }

    private var upstreamLines: [String] {
        guard let route = explanation.route, configuration.upstreams.indices.contains(route.upstream),
            let path = explanation.upstreamPath
        else { return [] }
        let query = request.target.utf8.contains(UInt8(ascii: "?")) ? ", the query as received" : ""
        return splitLines(route) + endpointLines + ["\(Self.shown(request.method)) \(path)\(query)"]
            + (route.host.map { ["Host: \($0)"] } ?? []) + mirrorLines(route)
            + (route.timeout.map { ["the response's head within \($0.configurationText) of the request"] } ?? [])
    }

    private func splitLines(_ route: Route) -> [String] {
        guard let split = route.split else { return [] }
        let shares = split.shares.filter { configuration.upstreams.indices.contains($0.upstream) }
            .map { "\(configuration.upstreams[$0.upstream].name.value) \($0.weight)" }.joined(separator: ", ")
        let key = explanation.upstream == nil ? "; the client's address decides" : "; the subject decides"
        return ["split: \(shares)" + (explanation.isNewAccount ? "; the subject of the account decides" : key)]
    }

    private func mirrorLines(_ route: Route) -> [String] {
        guard let mirror = route.mirror, configuration.upstreams.indices.contains(mirror.upstream) else { return [] }
        let name = configuration.upstreams[mirror.upstream].name.value
        let share = mirror.percentage.configurationText
        return ["mirror: \(name) gets copies of \(share) of the requests, without credentials"]
    }

    private var endpointLines: [String] {
        guard let index = explanation.upstream, configuration.upstreams.indices.contains(index) else { return [] }
        let upstream = configuration.upstreams[index]
        let preview = endpointPreview(of: upstream)
        let endpoints = preview.endpoints.map { $0.note.isEmpty ? $0.url : "\($0.url) (\($0.note))" }
        let chosen = preview.chosen.map { ": \($0)" } ?? ""
        let rule = preview.endpoints.count == 1 ? [] : ["endpoint: \(preview.rule)\(chosen)"]
        return ["\(upstream.name.value): \(endpoints.joined(separator: ", "))"] + rule + Self.transportLines(upstream)
    }

    func endpointPreview(of upstream: UpstreamConfiguration) -> EndpointPreview {
        let subject = explanation.isNewAccount ? nil : explanation.principal?.subject
        return EndpointPreview(upstream, subject: subject, fields: request.fields)
    }

    private var responseLines: [String] {
        var fields = explanation.crossOriginFields.map { "sets \(Self.shown($0)), by cors" }
        if explanation.isAllowed { fields += explanation.setCookies.map { "sets Set-Cookie: \($0)" } }
        guard let headers = explanation.route?.responseHeaders else { return fields }
        // Those of the gateway's own responses stay.
        let removed = explanation.isForwarded ? headers.remove : []
        return headers.set.map { "sets \($0.name): \($0.value)" } + removed.map { "removes \($0)" } + fields
    }

    /// The transport of an upstream, unless it is HTTP/1.1 in clear text.
    private static func transportLines(_ upstream: UpstreamConfiguration) -> [String] {
        var words: [String] = []
        let endpoints = upstream.endpoints.map(\.value)
        if endpoints.contains(where: { if case .h2c = $0 { true } else { upstream.transport.version == .h2 } }) {
            words.append("HTTP/2")
        }
        if endpoints.contains(where: { if case .https = $0 { true } else { false } }), !upstream.transport.tls.verifies
        {
            words.append("its certificate is not verified")
        }
        if upstream.transport.sendsProxyProtocol { words.append("receives the client's address by the PROXY protocol") }
        return words.isEmpty ? [] : [words.joined(separator: ", ")]
    }

    private var upgradeLines: [String] {
        guard let route = explanation.route, !route.upgrade.protocols.isEmpty,
            configuration.upstreams.indices.contains(route.upstream)
        else { return ["nothing"] }
        let upgrade = route.upgrade
        let idle = min(upgrade.idle, configuration.upstreams[explanation.upstream ?? route.upstream].timeouts.idle)
        var lines = [
            "\(upgrade.protocols.joined(separator: " or ")); idle timeout \(idle.configurationText)"
        ]
        if let longest = upgrade.maximumConnectionAge { lines[0] += ", maximum age \(longest.configurationText)" }
        guard explanation.principal != nil else { return lines }
        switch upgrade.closeOnExpiry {
        case .never: lines.append("stays open when the credential expires or is revoked")
        case .after(.zero): lines.append("closed when the credential expires or is revoked, as long responses are")
        case .after(let grace):
            lines.append(
                "closed \(grace.configurationText) after the credential expires or is revoked, as long responses are")
        }
        return lines
    }

    private var decisionLines: [String] {
        switch explanation.outcome {
        case .forwarded where explanation.route?.servesChecksOnly == true:
            return ["let in: a check of this request gets 200; one that comes in itself gets 404 no_route"]
        case .forwarded: return ["forwarded: the client receives the upstream's response"]
        case .answeredLocally:
            return ["served by the gateway itself: 404 and 405 where it has no endpoint for this path and method"]
        case .responded(let status, let location):
            let target = location.map { ", Location: \(Self.shown($0))" } ?? ""
            return ["the route responds itself: \(status)\(target)"]
        case .preflight(let isAllowed):
            return [
                "a preflight, to which the gateway responds before authentication: 204",
                "pages of its origin \(isAllowed ? "may" : "may not") use the route",
            ]
        case .refused(let response): return Self.lines(response)
        case .undecidable(let response, let reason):
            return [reason.isEmpty ? "undecidable" : "undecidable: \(Self.shown(reason))"]
                + ["while this lasts, the gateway responds"] + Self.lines(response)
        }
    }

    private static func lines(_ response: ClientResponse) -> [String] {
        var lines = ["\(response.status) \(response.code), in the log \(response.reason)"]
        if let condition = response.condition { lines.append("condition: \(condition)") }
        lines += response.challenges.map { "WWW-Authenticate: \($0)" }
        if let allow = response.allow { lines.append("Allow: \(allow)") }
        if let location = response.location { lines.append("Location: \(shown(location))") }
        lines += response.setCookies.map { "Set-Cookie: \($0)" }
        return lines
    }

    // MARK: Text

    /// `ok   name    detail`, with aligned columns.
    private static func table(_ results: [CheckOutcome]) -> [String] {
        let width = min(results.map(\.check.count).max() ?? 0, 48)
        return results.map { result in
            let mark = result.failure == nil ? "ok  " : "FAIL"
            let code = result.failure.map { "[\($0)]" } ?? ""
            let tail = [shown(result.detail), code].filter { !$0.isEmpty }.joined(separator: " ")
            return tail.isEmpty
                ? "\(mark) \(shown(result.check))" : "\(mark) \(padded(shown(result.check), to: width))  \(tail)"
        }
    }

    private static func section(_ label: String, _ lines: [String]) -> String {
        lines.enumerated().map { padded($0.offset == 0 ? label : "", to: labelWidth) + $0.element + "\n" }.joined()
    }

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(width - text.count, 0))
    }

    /// An untrusted text with its control characters replaced.
    private static func shown(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }
}
