internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis

/// Whether requests should be sent here, and which dependency is to blame if not.
///
/// A dependency that is away makes the instance `degraded`, still 200: what does not need it goes on. It is 503 while
/// draining, and while the store is away under `on_error: deny`.
struct Readiness {
    enum State: String { case ready, degraded, unavailable, draining }

    private struct Check {
        let name: String
        let state: String
        let detail: String
    }

    let state: State
    private let checks: [Check]

    init(_ gateway: Gateway) {
        let graph = gateway.graph
        var checks: [Check] = []
        var worst = State.ready
        if let redis = graph.store.redis {
            let status = redis.status
            checks.append(Check(name: "store", state: status.state.rawValue, detail: status.lastError?.message ?? ""))
            if status.state != .connected {
                worst = graph.blueprint.configuration.store.onError == .deny ? .unavailable : .degraded
            }
        }
        for provider in graph.providers {
            guard let health = provider.reporting?.health else { continue }
            checks.append(Check(name: "provider.\(provider.name)", state: health.state.rawValue, detail: health.detail))
            if health.state != .ready, worst == .ready { worst = .degraded }
        }
        self.checks = checks
        state = gateway.isDraining ? .draining : worst
    }

    var response: LocalResponse {
        let document = JSONValue.object(
            JSONObject([
                ("status", .string(state.rawValue)),
                (
                    "checks",
                    .array(
                        checks.map { check in
                            .object(
                                JSONObject([
                                    ("name", .string(check.name)), ("state", .string(check.state)),
                                    ("detail", .string(check.detail)),
                                ]))
                        })
                ),
            ]))
        let status = state == .ready || state == .degraded ? 200 : 503
        var fields: [(name: String, value: String)] = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        if status == 503 { fields.append(("Retry-After", "1")) }
        return LocalResponse(status: status, fields: fields, body: JSON.write(document) + [0x0A])
    }
}
