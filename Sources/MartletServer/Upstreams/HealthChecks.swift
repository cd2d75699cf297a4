internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletIO
internal import MartletUpstreams

/// The health checks of the current configuration: one monitor for the process, which notifies every event loop.
///
/// Without a `health_check` in the configuration there is no monitor, and no thread.
final class HealthChecks: Sendable {
    private struct State {
        var roster = HealthRoster()
        var upstreams: [UpstreamConfiguration] = []
        var names: [ResolvedName] = []
        var monitor: HealthMonitor?
        var isStopped = false
        var notify: (@Sendable ([EndpointHealth]) -> Void)?
    }

    private let clock: Clock
    private let logger: Logger
    private let state = Lock(State(), .endpoints)

    init(clock: Clock, logger: Logger) { (self.clock, self.logger) = (clock, logger) }

    /// The counters of each upstream that has checks, by name.
    var counts: [(upstream: String, counts: HealthCounts)] {
        let counts = state.withLock(\.monitor)?.counts ?? [:]
        return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Sets what is called with changes; it must not block.
    func attach(_ notify: @escaping @Sendable ([EndpointHealth]) -> Void) {
        state.withLock { $0.notify = notify }
    }

    /// Follows a configuration, after the loops have adopted it.
    func follow(_ upstreams: [UpstreamConfiguration], _ names: [ResolvedName]) {
        let checked = upstreams.filter { $0.policies.healthCheck != nil }
        let unused = state.withLock { state in
            (state.upstreams, state.names) = (checked, checked.isEmpty ? [] : names)
            return apply(&state)
        }
        unused?.shutdown()
    }

    /// Follows new addresses of host names, after the loops have got them.
    /// - Parameter names: all names of the configuration.
    func follow(_ names: [ResolvedName]) {
        let unused = state.withLock { state -> HealthMonitor? in
            guard !state.upstreams.isEmpty else { return nil }
            state.names = names
            return apply(&state)
        }
        unused?.shutdown()
    }

    func stop() {
        let monitor = state.withLock { state in
            state.isStopped = true
            defer { state.monitor = nil }
            return state.monitor
        }
        monitor?.shutdown()
    }

    /// - Returns: a monitor that is not needed any more. Its thread may wait for the lock.
    private func apply(_ state: inout State) -> HealthMonitor? {
        guard !state.isStopped else { return nil }
        let adoption = state.roster.adopt(state.upstreams, state.names)
        // The loops may have new entries for endpoints that are unhealthy.
        let notices = adoption.released + state.roster.unhealthy
        if !notices.isEmpty { state.notify?(notices) }
        if state.upstreams.isEmpty {
            defer { state.monitor = nil }
            return state.monitor
        }
        if state.monitor == nil, !adoption.targets.isEmpty { state.monitor = start() }
        state.monitor?.follow(adoption.targets)
        return nil
    }

    private func start() -> HealthMonitor? {
        do throws(HealthMonitorError) {
            return try HealthMonitor(clock: clock) { [weak self] in self?.note($0) }
        } catch {
            logger.error("health checks not started", ("code", "\(error.code)"), ("reason", error.message))
            return nil
        }
    }

    /// Called on the monitor's thread.
    private func note(_ changes: [HealthChange]) {
        // The loops are notified under the lock, so that no older state follows a newer one.
        let events = state.withLock { state in
            let events = state.roster.note(changes)
            if !events.isEmpty { state.notify?(events.map(\.health)) }
            return events
        }
        for event in events { log(event) }
    }

    private func log(_ event: HealthRoster.Event) {
        let endpoint = event.health.endpoint
        var fields = [("upstream", endpoint.upstream), ("endpoint", EndpointText.url(endpoint.address))]
        if let resolved = endpoint.resolved { fields.append(("address", resolved.description)) }
        fields.append(("reason", event.health.reason))
        if event.health.isHealthy {
            fields.append(("unhealthy_seconds", String(event.lasted.wholeSeconds)))
            logger.info("upstream endpoint healthy again", fields)
        } else {
            fields.append(("healthy_seconds", String(event.lasted.wholeSeconds)))
            logger.warning("upstream endpoint unhealthy", fields)
        }
    }
}
