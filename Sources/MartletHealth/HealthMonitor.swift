package import MartletCore
private import Synchronization

/// The health checks could not be started.
package struct HealthMonitorError: CodedError {
    package var code: ErrorCode { "health.not_started" }
    package let message: String
}

/// Probes endpoints with libcurl on a thread of its own, and reports which have become healthy or unhealthy.
package final class HealthMonitor: Sendable {
    private let worker: HealthWorker
    private let thread: SystemThread

    /// Starts the thread.
    /// - Parameters:
    ///   - clock: the source of time.
    ///   - onChange: called on the thread; must not block, nor call the monitor.
    package init(
        clock: Clock = .system, onChange: @escaping @Sendable ([HealthChange]) -> Void
    ) throws(HealthMonitorError) {
        guard let worker = HealthWorker(clock, onChange) else {
            throw HealthMonitorError(message: "libcurl setup failed")
        }
        self.worker = worker
        do {
            thread = try SystemThread(name: "martlet-health") { worker.run() }
        } catch {
            throw HealthMonitorError(message: error.message)
        }
    }

    deinit { worker.stop() }

    /// Replaces the endpoints; those that stay keep their state.
    package func follow(_ targets: [HealthTarget]) { worker.follow(targets) }

    /// The counters of each upstream.
    package var counts: [String: HealthCounts] { worker.counts }

    /// Ends the thread, without waiting for probes in flight.
    package func shutdown() {
        worker.stop()
        thread.join()
    }
}
