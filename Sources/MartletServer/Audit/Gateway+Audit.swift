internal import MartletAdmin
package import MartletAudit
internal import MartletConfig
internal import MartletCore
internal import MartletResponder
internal import MartletRouter
internal import Synchronization

extension Gateway {
    /// The audit log of the configuration in use; `nil` without one.
    package var audit: (any AuditRecording)? { graph.blueprint.audit == nil ? nil : services.audit }

    /// Goes on in the files that the configuration names, after they were moved.
    package func reopenAuditLog() { services.audit.reopen() }

    func auditReload(_ reload: ReloadRecording) {
        guard let audit else { return }
        var event = reload.event
        event.set("routes", graph.blueprint.routes.configured.count)
        audit.record(event)
    }
}

/// The audit log of the configuration in use, and what it says without being called: about keys and rejections.
final class AuditPart: GatewayPart {
    /// How long the last lines may take.
    private static let timeout = Duration.seconds(3)

    private let prepared = Lock<AuditLog.Prepared?>(nil)
    /// What the log has said about rejections.
    private let rejections = Lock(RejectionWindow())
    private let task = BackgroundTask()

    /// Opens the log; nothing is written yet.
    func prepare(_ change: GatewayChange, in gateway: Gateway) async throws(StartError) {
        let services = gateway.services
        do throws(AuditError) {
            let opened = try services.audit.prepare(
                change.next.blueprint.auditDestinations(services), waits: change.hasPredecessor)
            prepared.withLock { $0 = opened }
        } catch {
            throw StartError(error, exit: .unavailable)
        }
    }

    func abandon(_ graph: Graph?, keeping serving: Graph, in gateway: Gateway) async { prepared.withLock { $0 = nil } }

    /// Writes the log from now on, and looks for rejections if there is one.
    func follow(_ change: GatewayChange, in gateway: Gateway) {
        let next = change.next.blueprint
        if let old = change.old?.blueprint, let trigger = change.trigger, old.audit != nil, next.audit == nil {
            // The log that ends says so.
            var event = ReloadRecording(trigger, isSuccess: true, digest: next.digest).event
            event.set("detail", "audit_off")
            gateway.services.audit.record(event)
        }
        let opened = prepared.withLock { prepared in
            defer { prepared = nil }
            return prepared
        }
        if let opened { gateway.services.audit.adopt(opened) }
        guard let audit = gateway.audit else { return }
        if let old = change.old?.blueprint, let trigger = change.trigger {
            for event in KeyInventory(old).events(changingTo: KeyInventory(next), trigger) { audit.record(event) }
        }
        task.start { [self, weak gateway] in
            while let gateway {
                do { try await Task.sleep(for: RejectionWindow.interval) } catch { return }
                await recordRejections(gateway)
            }
        }
    }

    func report(into report: inout AdminReport, of graph: Graph, in gateway: Gateway) {
        if graph.blueprint.audit != nil { report.lostAuditEvents = gateway.services.audit.lost }
    }

    /// Its last look at the counters is before the loops end.
    func finish(in gateway: Gateway) async {
        await task.end()
        await recordRejections(gateway)
    }

    func stop(in gateway: Gateway) async { await gateway.services.audit.end(within: Self.timeout) }

    /// Records the rejections since the last time, by reason and count.
    private func recordRejections(_ gateway: Gateway) async {
        guard let audit = gateway.audit else { return }
        let reports = await gateway.loopReports(withEndpoints: false)
        for event in rejections.withLock({ $0.events(reports) }) { audit.record(event) }
    }
}
