internal import MartletAudit
internal import MartletResponder

/// Finds out from the counters of the event loops how often requests were rejected since the last look, by reason.
struct RejectionWindow {
    static let interval = Duration.seconds(10)
    /// Reasons that say nothing about who may do what.
    private static let others = ["router.", "upstream.", "client."]

    /// The last counters of each loop.
    private var counted: [Int: [String: Int]] = [:]

    /// What was counted since the last reports; a loop that does not report is counted the next time.
    mutating func events(_ reports: [LoopReport]) -> [AuditEvent] {
        var rejections: [String: Int] = [:]
        for report in reports {
            let before = counted[report.loop] ?? [:]
            for (reason, count) in report.reasons { rejections[reason, default: 0] += count - (before[reason] ?? 0) }
            counted[report.loop] = report.reasons
        }
        return rejections.sorted { $0.key < $1.key }.compactMap { reason, count in
            guard count > 0, !Self.others.contains(where: { reason.hasPrefix($0) }) else { return nil }
            var event = AuditEvent(.rejection, .rejected)
            event.set("reason", reason)
            event.set("count", count)
            return event
        }
    }
}
