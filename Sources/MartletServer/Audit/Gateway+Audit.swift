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

    /// Opens the audit log of a configuration; nothing is written yet.
    /// - Parameter waits: whether another process may still write the file.
    func prepareAudit(_ blueprint: Blueprint, waits: Bool = false) throws(StartError) -> AuditLog.Prepared {
        do throws(AuditError) {
            return try services.audit.prepare(blueprint.auditDestinations(services), waits: waits)
        } catch {
            throw StartError(code: error.code, message: error.message, exit: .unavailable)
        }
    }

    /// Records what a reload has come to.
    func auditReload(_ reload: ReloadRecording) {
        guard let audit else { return }
        var event = reload.event
        event.set("routes", graph.blueprint.routes.configured.count)
        audit.record(event)
    }

    /// Records in the log that ends that a reload ends it.
    func auditEnd(of old: Blueprint, in new: Blueprint, _ trigger: ReloadTrigger) {
        guard old.audit != nil, new.audit == nil else { return }
        var event = ReloadRecording(trigger, isSuccess: true, digest: new.digest).event
        event.set("detail", "audit_off")
        services.audit.record(event)
    }

    /// Records which keys and certificates a reload has changed.
    func auditKeys(from old: Blueprint, to new: Blueprint, _ trigger: ReloadTrigger) {
        guard let audit else { return }
        for event in KeyInventory(old).events(changingTo: KeyInventory(new), trigger) { audit.record(event) }
    }

    /// Records rejections by reason and count, until it is cancelled.
    func auditRejections() async {
        while true {
            do { try await Task.sleep(for: RejectionWindow.interval) } catch { return }
            await auditNewRejections()
        }
    }

    /// Records the rejections since the last time.
    func auditNewRejections() async {
        guard let audit else { return }
        let reports = await loopReports(withEndpoints: false)
        for event in rejections.withLock({ $0.events(reports) }) { audit.record(event) }
    }
}
