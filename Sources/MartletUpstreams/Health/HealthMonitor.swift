package import MartletCore
private import MartletFetch

/// The health checks could not be started.
package struct HealthMonitorError: CodedError {
    package var code: ErrorCode { "health.not_started" }
    package let message: String
}

/// Probes endpoints with libcurl on a thread of its own, and reports which have become healthy or unhealthy.
package final class HealthMonitor: Sendable {
    private let plan: ProbePlan
    private let worker: TransferWorker

    /// Starts the thread.
    /// - Parameters:
    ///   - clock: the source of time.
    ///   - onChange: called on the thread; must not block, nor call the monitor.
    package init(
        clock: Clock = .system, onChange: @escaping @Sendable ([HealthChange]) -> Void
    ) throws(HealthMonitorError) {
        plan = ProbePlan(clock, onChange)
        do {
            worker = try TransferWorker(
                name: "martlet-health", keptConnections: HealthBook.maximumConnections, plan: plan)
        } catch {
            throw HealthMonitorError(message: error.message)
        }
    }

    deinit { worker.stop() }

    /// Replaces the endpoints; those that stay keep their state.
    package func follow(_ targets: [HealthTarget]) {
        plan.follow(targets)
        worker.wake()
    }

    /// The counters of each upstream.
    package var counts: [String: HealthCounts] { plan.counts }

    /// Ends the thread, without waiting for probes in flight.
    package func shutdown() { worker.shutdown() }
}
