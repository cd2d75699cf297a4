package import MartletAccounts
package import MartletConfig
internal import MartletCore
package import MartletEvents
internal import MartletJSON
internal import MartletProvider
package import MartletRedis
internal import MartletResponder

/// Whether requests should be sent here, and the state of every dependency.
///
/// An unavailable dependency makes the instance `degraded`, still with status 200, because requests that do not need it
/// work. The status is 503 while draining, and while the store is unavailable under `on_error: deny`.
package struct Readiness: Sendable {
    /// The state of the instance.
    package enum State: String, Sendable, CaseIterable {
        case ready, degraded, unavailable, draining

        /// Whether a load balancer should send requests.
        package var isServing: Bool { self == .ready || self == .degraded }
    }

    /// The state of one dependency.
    package struct Check: Sendable, Equatable {
        /// `store`, `sessions`, `revocations`, `accounts`, or `provider.` or `webhook.` and a name.
        package let name: String
        /// `connected` or `ready` if it is healthy; `degraded` if a part of it is.
        package let state: String
        package let detail: String

        package init(name: String, state: String, detail: String) {
            (self.name, self.state, self.detail) = (name, state, detail)
        }

        package var isHealthy: Bool { state == "connected" || state == "ready" }
    }

    /// The name of the process; empty for none.
    let instanceID: String
    private(set) var state: State
    private(set) var checks: [Check]

    /// - Parameters:
    ///   - instanceID: the name of the process; empty for none.
    ///   - sessions: what requests with sessions get; `nil` without a store whose sessions may be unavailable.
    package init(
        instanceID: String = "", store: AdminReport.Store, sessions: SessionAvailability? = nil,
        subscription: RedisStatus?, accounts: AccountHealth?,
        onError: StoreConfiguration.OnError, providers: [AdminReport.Provider], webhooks: [WebhookStatus] = [],
        isDraining: Bool
    ) {
        self.instanceID = instanceID
        var checks: [Check] = []
        var worst = State.ready
        if case .redis(let status) = store {
            let isConnected = status.state == .connected
            if isConnected, let impairment = StoreImpairment(status) {
                // A part of the sessions is there, so the instance serves.
                checks.append(Check(name: "store", state: State.degraded.rawValue, detail: impairment.detail))
                worst = .degraded
            } else {
                let reason = status.lastError?.message ?? "not connected yet"
                let detail = isConnected ? "" : "\(reason); requests with sessions get 503\(Self.exception(onError))"
                let state = StoreImpairment.isUseless(status) ? State.degraded.rawValue : status.state.rawValue
                checks.append(Check(name: "store", state: state, detail: detail))
                if !isConnected { worst = onError == .deny ? .unavailable : .degraded }
            }
        }
        if let sessions {
            checks.append(Check(name: "sessions", state: sessions.rawValue, detail: sessions.detail))
        }
        if let subscription {
            let isConnected = subscription.state == .connected
            let detail = isConnected ? "" : subscription.lastError?.message ?? ""
            checks.append(Check(name: "revocations", state: subscription.state.rawValue, detail: detail))
            if !isConnected, worst == .ready { worst = .degraded }
        }
        if let accounts {
            checks.append(Check(name: "accounts", state: accounts.state.rawValue, detail: accounts.detail))
            if accounts.state != .ready, worst == .ready { worst = .degraded }
        }
        for provider in providers {
            guard let health = provider.health else { continue }
            checks.append(Check(name: "provider.\(provider.name)", state: health.state.rawValue, detail: health.detail))
            if health.state != .ready, worst == .ready { worst = .degraded }
        }
        for webhook in webhooks {
            let state = webhook.failure == nil ? State.ready : .degraded
            let detail = webhook.failure.map { "\($0); what it does not confirm is sent again" } ?? ""
            checks.append(Check(name: "webhook.\(webhook.hook)", state: state.rawValue, detail: detail))
            if state != .ready, worst == .ready { worst = .degraded }
        }
        self.checks = checks
        state = isDraining ? .draining : worst
    }

    init(_ source: any AdminSource) {
        self = source.adminReport(loops: [], responding: 0).readiness
        guard source.isStalled else { return }
        checks.append(Check(name: "loops", state: "stalled", detail: "an event loop stands still; see the log"))
        state = .unavailable
    }

    var isServing: Bool { state.isServing }

    private static func exception(_ onError: StoreConfiguration.OnError) -> String {
        switch onError {
        case .cached: " once their copy is older than sessions.cache_ttl"
        case .deny: ""
        }
    }

    /// The response of `/readyz`: the state, and every dependency by name.
    var response: LocalResponse {
        let document: JSONValue = [
            "status": .string(state.rawValue),
            "instance_id": .string(instanceID),
            "checks": .array(
                checks.map { ["name": .string($0.name), "state": .string($0.state), "detail": .string($0.detail)] }),
        ]
        var fields: [(name: String, value: String)] = [
            ("Content-Type", "application/json"), ("Cache-Control", "no-store"),
        ]
        if !isServing { fields.append(("Retry-After", "1")) }
        return LocalResponse(status: isServing ? 200 : 503, fields: fields, body: JSON.write(document) + [0x0A])
    }
}
