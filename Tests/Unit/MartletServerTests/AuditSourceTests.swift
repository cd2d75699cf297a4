import MartletAudit
import MartletJSON
import MartletReports
import Testing

@testable import MartletServer

@Suite struct `What the audit log says about rejections` {
    private func report(_ loop: Int, _ reasons: [String: Int]) -> LoopReport {
        var report = LoopReport()
        (report.loop, report.reasons) = (loop, reasons)
        return report
    }

    private func counts(_ events: [AuditEvent]) -> [String] {
        events.map { "\($0.members["reason"]?.string ?? "") \($0.members["count"]?.int64 ?? -1)" }
    }

    @Test func `is how many there were since the last time, by reason`() {
        var window = RejectionWindow()
        let first = window.events([report(0, ["auth.a": 2, "auth.b": 1]), report(1, ["auth.a": 3])])
        #expect(counts(first) == ["auth.a 5", "auth.b 1"])
        #expect(first.allSatisfy { $0.kind == .rejection && $0.outcome == .rejected })
        #expect(window.events([report(0, ["auth.a": 2, "auth.b": 1]), report(1, ["auth.a": 3])]).isEmpty)
        // A loop that did not report in time is counted the next time.
        #expect(counts(window.events([report(0, ["auth.a": 4, "auth.b": 1])])) == ["auth.a 2"])
        #expect(counts(window.events([report(1, ["auth.a": 10])])) == ["auth.a 7"])
    }

    @Test func `leaves out what says nothing about who may do what`() {
        var window = RejectionWindow()
        let events = window.events([
            report(0, ["router.no_route": 5, "upstream.timeout": 2, "request.body_too_large": 1])
        ])
        #expect(counts(events) == ["request.body_too_large 1"])
    }
}

@Suite struct `What the audit log says about keys` {
    @Test func `is which were added and removed`() {
        let old = KeyInventory(names: ["certificate": ["a"], "assertion": ["k1"], "audit": []])
        #expect(old.events(changingTo: old).isEmpty)
        let next = KeyInventory(names: ["certificate": ["b"], "assertion": ["k1", "k2"], "audit": []])
        let events = old.events(changingTo: next)
        #expect(events.map { $0.members["key_kind"]?.string } == ["assertion", "certificate"])
        #expect(events[0].members["added"] == ["k2"] && events[0].members["removed"] == nil)
        #expect(events[1].members["added"] == ["b"] && events[1].members["removed"] == ["a"])
    }
}
