internal import MartletAccounts
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
struct Readiness: Sendable {
    enum State: String, Sendable, CaseIterable {
        case ready, degraded, unavailable, draining

        /// Whether a load balancer should send requests.
        var isServing: Bool { self == .ready || self == .degraded }
    }

    /// How one dependency is.
    struct Check: Sendable, Equatable {
        /// `store`, `revocations`, `accounts`, or `provider.` and its name.
        let name: String
        /// `connected` and `ready` are good; every other word is not.
        let state: String
        let detail: String

        var isWell: Bool { state == "connected" || state == "ready" }
    }

    let state: State
    let checks: [Check]

    init(
        store: AdminReport.Store, listener: RedisStatus?, accounts: AccountHealth?,
        onError: StoreConfiguration.OnError, providers: [AdminReport.Provider], isDraining: Bool
    ) {
        var checks: [Check] = []
        var worst = State.ready
        if case .redis(let status) = store {
            let isConnected = status.state == .connected
            let detail = isConnected ? "" : status.lastError?.message ?? ""
            checks.append(Check(name: "store", state: status.state.rawValue, detail: detail))
            if !isConnected { worst = onError == .deny ? .unavailable : .degraded }
        }
        if let listener {
            let isListening = listener.state == .connected
            let detail = isListening ? "" : listener.lastError?.message ?? ""
            checks.append(Check(name: "revocations", state: listener.state.rawValue, detail: detail))
            if !isListening, worst == .ready { worst = .degraded }
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
        self.checks = checks
        state = isDraining ? .draining : worst
    }

    init(_ gateway: Gateway) {
        self = AdminReport(gateway, loops: [], answering: 0).readiness
    }

    /// Whether a load balancer should send requests.
    var isServing: Bool { state.isServing }

    /// What `/readyz` answers: the state, and every dependency by name.
    var response: LocalResponse {
        let document: JSONValue = [
            "status": .string(state.rawValue),
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
