internal import MartletConfig
internal import MartletCore
private import MartletJOSE
public import MartletProvider

extension OIDCProvider: Running {
    /// Fetches the discovery document and the keys, and starts refreshing them.
    public func start() async {
        await discovery?.start()
        await keys.start()
    }

    /// Stops refreshing the keys.
    public func shutdown() async {
        discovery?.stop()
        await keys.stop()
    }
}

extension OIDCProvider: Reporting {
    public var health: ProviderHealth {
        var health = keyHealth
        var gauges = health.gauges
        if let status = discovery?.status { gauges += Self.gauges(of: status) }
        var state = health.state
        if let introspector {
            gauges += introspector.metrics.gauges
            // Opaque tokens need no keys.
            if state == .unavailable { state = .degraded }
            if let error = introspector.metrics.lastError {
                state = .degraded
                health = ProviderHealth(state: state, detail: "\(health.detail), introspection: \(error)", gauges: [])
            }
        }
        return ProviderHealth(state: state, detail: health.detail, gauges: gauges)
    }

    var keyHealth: ProviderHealth {
        switch keys {
        case .url(let keys): return ProviderHealth(keys.status)
        case .file(let set):
            let names = set.keys.keys.map(\.text).sorted().joined(separator: " ")
            return ProviderHealth(state: .ready, detail: "keys \(names) from a file", gauges: [])
        case .discovered(let keys, let discovery):
            if let keys = keys.keys { return ProviderHealth(keys.status) }
            let status = discovery.status
            let error = status.lastError.map { ", last attempt: \(status.lastMessage ?? "") [\($0)]" } ?? ""
            return ProviderHealth(state: .unavailable, detail: "no discovery document\(error)", gauges: [])
        }
    }

    private static func gauges(of status: Discovery.Status) -> [ProviderHealth.Gauge] {
        var gauges: [ProviderHealth.Gauge] = [
            .init(
                name: "discovery_fetches_total", help: "Requests for the issuer's discovery document.", kind: .counter,
                value: Double(status.fetches)),
            .init(
                name: "discovery_failures_total", help: "Failed requests for the issuer's discovery document.",
                kind: .counter, value: Double(status.failures)),
        ]
        if let age = status.age {
            gauges.append(
                .init(
                    name: "discovery_age_seconds",
                    help: "Time since the discovery document in use was fetched from the issuer.", kind: .gauge,
                    value: Double(age.wholeMilliseconds) / 1000))
        }
        return gauges
    }
}
