internal import MartletCore
internal import MartletJSON
internal import MartletResponder

/// The outcome of a request to take an endpoint out of use, or to restore it.
package enum EndpointDraining: Sendable, Equatable {
    /// Every event loop has been notified.
    case done
    /// The configuration has no such upstream.
    case unknownUpstream
    /// The upstream has no such endpoint.
    case unknownEndpoint
}

/// `/upstreams`: GET shows the state of every endpoint; POST to `/upstreams/{name}/drain` and `/restore` takes an
/// endpoint out of use and back, until the gateway ends.
struct AdminUpstreams {
    private static let limits = JSONLimits(maximumDepth: 2, maximumBytes: 4096)

    // MARK: Changes

    static func respond(
        to request: LocalRequest, _ upstream: String, isDrained: Bool, _ source: any AdminSource
    ) -> LocalResponse {
        guard let endpoint = endpoint(in: request) else {
            return AdminProblem.invalid("the body must be an object with the member endpoint, a URL, and no other")
                .response(request.requestID)
        }
        let problem: AdminProblem
        switch source.drain(endpoint, of: upstream, isDrained: isDrained) {
        case .done:
            return .admin([
                "upstream": .string(upstream), "endpoint": .string(endpoint),
                "state": .string(isDrained ? "draining" : "restored"),
            ])
        case .unknownUpstream: problem = .notFound("the configuration has no upstream \(upstream)")
        case .unknownEndpoint: problem = .notFound("upstream \(upstream) has no endpoint \(endpoint)")
        }
        return problem.response(request.requestID)
    }

    private static func endpoint(in request: LocalRequest) -> String? {
        guard request.bodyBytes <= limits.maximumBytes else { return nil }
        guard let body = (try? JSON.parse(request.body, limits: limits))?.object, body.members.count == 1
        else { return nil }
        return body["endpoint"]?.string
    }

    // MARK: State

    /// The state of every endpoint; `since` is in Unix seconds, or null where it has been so from the start.
    /// - Parameter last: the counters of an upstream in the last ten minutes.
    static func document(_ report: AdminReport, _ last: (_ upstream: String) -> JSONObject) -> LocalResponse {
        let traffic = Traffic(report.loops)
        var upstreams: [(name: String, endpoints: [JSONValue], isPanicking: Bool)] = []
        for (key, endpoint) in traffic.endpoints {
            if upstreams.last?.name != key.upstream { upstreams.append((key.upstream, [], false)) }
            upstreams[upstreams.count - 1].endpoints.append(.object(object(of: key, endpoint, report)))
            if endpoint.isPanicking { upstreams[upstreams.count - 1].isPanicking = true }
        }
        return .admin([
            "upstreams": .array(
                upstreams.map { upstream in
                    [
                        "name": .string(upstream.name), "panic": .bool(upstream.isPanicking),
                        "endpoints": .array(upstream.endpoints), "last": .object(last(upstream.name)),
                    ]
                })
        ])
    }

    private static func object(
        of key: Traffic.EndpointKey, _ endpoint: Traffic.Endpoint, _ report: AdminReport
    ) -> JSONObject {
        var object: JSONObject = ["endpoint": .string(key.endpoint)]
        if let address = key.address { object["address"] = .string(address) }
        object["state"] = .string(endpoint.state.rawValue)
        object["reason"] = .string(endpoint.reason)
        object["since"] = endpoint.age.map { .integer(report.now.seconds - $0 / 1_000_000_000) } ?? .null
        object["weight"] = .integer(Int64(endpoint.weight))
        object["backup"] = .bool(endpoint.isBackup)
        object["requests_active"] = .integer(Int64(endpoint.active))
        object["connections_idle"] = .integer(Int64(endpoint.idle))
        object["failures_in_row"] = .integer(Int64(endpoint.failures))
        object["ejecting_loops"] = .integer(Int64(endpoint.ejectingLoops))
        object["loops"] = .integer(Int64(report.loops.count))
        return object
    }
}
