internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletExplain
package import MartletJSON
internal import MartletProvider
internal import MartletProxy
internal import MartletRouter

/// An explanation as one JSON document: the phases in their order, `null` if not reached; it never contains the
/// credential.
package struct ExplanationDocument {
    private let page: ExplanationPage

    package init(_ page: ExplanationPage) { self.page = page }

    private var explanation: RequestExplanation { page.explanation }

    /// The document with a final newline.
    package var text: String { String(decoding: JSON.write(object), as: UTF8.self) + "\n" }

    package var object: JSONObject {
        [
            "request": request, "path": explanation.path.map { .string($0) } ?? .null,
            "not_matched": .array(
                explanation.misses.map { miss in
                    [
                        "route": .string(page.routes.routes[miss.route].name),
                        "because": .string(ExplanationPage.part(miss.reason)),
                    ]
                }),
            "route": route, "provider": provider, "checks": Self.results(explanation.checks, named: "check"),
            "principal": principal, "conditions": Self.results(explanation.policy, named: "condition"),
            "headers": headers,
            "dropped_headers": .array(
                explanation.droppedHeaders.map { ["name": .string($0.name), "code": .string("\($0.reason)")] }),
            "removed_headers": .array(explanation.removedFields.map { .string($0) }),
            "upstream": upstream, "cors": .array(explanation.crossOriginFields.map { .string($0) }),
            "decision": decision,
        ]
    }

    private var request: JSONValue {
        [
            "method": .string(page.request.method), "target": .string(page.request.target),
            "host": page.request.host.map { .string($0) } ?? .null,
            "credential": .string(explanation.credential.rawValue),
        ]
    }

    private var route: JSONValue {
        guard let route = explanation.route else { return .null }
        let mode =
            switch route.mode {
            case .none: "none"
            case .required: "required"
            case .optional: "optional"
            }
        let providers = route.providers.filter(page.configuration.providers.indices.contains)
        return [
            "name": .string(route.name), "mode": .string(mode),
            "providers": .array(providers.map { .string(page.configuration.providers[$0].name.value) }),
            "limits": page.limits,
        ]
    }

    private var provider: JSONValue {
        guard let provider = explanation.provider else { return .null }
        return [
            "name": .string(provider.name), "kind": .string(provider.kind.rawValue),
            "state": explanation.health.map { .string($0.state.rawValue) } ?? .null,
            "detail": explanation.health.map { .string($0.detail) } ?? .null,
        ]
    }

    private var principal: JSONValue {
        guard let principal = explanation.principal else { return .null }
        let identity = principal.identity
        return [
            "subject": .string(principal.subject), "new_account": .bool(explanation.isNewAccount),
            "provider": .string(principal.provider), "provider_subject": .string(identity.providerSubject),
            "issuer": .string(identity.issuer), "session_id": principal.sessionID.map { .string($0) } ?? .null,
            "auth_time": .integer(identity.authTime.seconds), "expires_at": .integer(identity.expiresAt.seconds),
            "claims": .object(identity.claims),
        ]
    }

    private var headers: JSONValue {
        .array(
            explanation.headers.map { line in
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                let value = parts.count > 1 ? parts[1].drop { $0 == " " } : ""
                return ["name": .string(String(parts[0])), "value": .string(String(value))]
            })
    }

    private var upstream: JSONValue {
        guard let path = explanation.upstreamPath, let route = explanation.route else { return .null }
        let upstreams = page.configuration.upstreams
        let chosen = explanation.upstream.flatMap { upstreams.indices.contains($0) ? upstreams[$0] : nil }
        let preview = chosen.map { page.endpointPreview(of: $0) }
        let shares = (route.split?.shares ?? []).filter { upstreams.indices.contains($0.upstream) }
        return [
            "name": chosen.map { .string($0.name.value) } ?? .null,
            "endpoints": .array((chosen?.endpoints ?? []).map { .string(EndpointText.url($0.value)) }),
            "endpoint": preview?.chosen.map { .string($0) } ?? .null,
            "balance": preview.map { .string($0.rule) } ?? .null,
            "path": .string(path),
            "split": .array(
                shares.map { share in
                    [
                        "upstream": .string(upstreams[share.upstream].name.value),
                        "weight": .integer(Int64(share.weight)),
                    ]
                }),
            "mirror": mirror(of: route),
        ]
    }

    private func mirror(of route: Route) -> JSONValue {
        let upstreams = page.configuration.upstreams
        guard let mirror = route.mirror, upstreams.indices.contains(mirror.upstream) else { return .null }
        let (whole, rest) = mirror.percentage.millionths.quotientAndRemainder(dividingBy: 10_000)
        let percent = rest == 0 ? JSONNumber(Int64(whole)) : JSONNumber(Double(mirror.percentage.millionths) / 10_000)
        return [
            "upstream": .string(upstreams[mirror.upstream].name.value), "percent": percent.map { .number($0) } ?? .null,
        ]
    }

    private var decision: JSONValue {
        switch explanation.outcome {
        case .forwarded: ["outcome": "forwarded"]
        case .answeredLocally: ["outcome": "answered_here"]
        case .responded(let status, let location):
            [
                "outcome": "responded", "status": .integer(Int64(status)),
                "location": location.map { .string($0) } ?? .null,
            ]
        case .preflight(let isAllowed):
            ["outcome": "preflight", "status": 204, "allowed": .bool(isAllowed)]
        case .refused(let response): Self.rejection("refused", response, detail: nil)
        case .undecidable(let response, let reason): Self.rejection("undecidable", response, detail: reason)
        }
    }

    private static func rejection(_ outcome: String, _ response: ClientResponse, detail: String?) -> JSONValue {
        var members: [(String, JSONValue)] = [
            ("outcome", .string(outcome)), ("status", .integer(Int64(response.status))),
            ("code", .string(response.code)), ("reason", .string("\(response.reason)")),
            ("www_authenticate", .array(response.challenges.map { .string($0) })),
        ]
        if let condition = response.condition { members.append(("condition", .string(condition))) }
        if let allow = response.allow { members.append(("allow", .string(allow))) }
        if let location = response.location { members.append(("location", .string(location))) }
        if !response.setCookies.isEmpty {
            members.append(("set_cookie", .array(response.setCookies.map { .string($0) })))
        }
        if let detail, !detail.isEmpty { members.append(("detail", .string(detail))) }
        return .object(JSONObject(members))
    }

    private static func results(_ results: [CheckOutcome], named name: String) -> JSONValue {
        .array(
            results.map { result in
                [
                    name: .string(result.check), "ok": .bool(result.failure == nil),
                    "code": result.failure.map { .string("\($0)") } ?? .null, "detail": .string(result.detail),
                ]
            })
    }
}
