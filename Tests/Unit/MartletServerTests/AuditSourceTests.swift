import MartletAdmin
import MartletAudit
import MartletCore
import MartletJSON
import MartletResponder
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
        #expect(old.events(changingTo: old, .signal).isEmpty)
        let next = KeyInventory(names: ["certificate": ["b"], "assertion": ["k1", "k2"], "audit": []])
        let events = old.events(changingTo: next, .watch)
        #expect(events.allSatisfy { $0.members["trigger"] == "watch" })
        #expect(events.map { $0.members["key_kind"]?.string } == ["assertion", "certificate"])
        #expect(events[0].members["added"] == ["k2"] && events[0].members["removed"] == nil)
        #expect(events[1].members["added"] == ["b"] && events[1].members["removed"] == ["a"])
    }
}

@Suite struct `What the audit log says about reloads` {
    @Test func `is what has asked for them, for which configuration, and why it failed`() {
        let asked = ReloadTrigger.admin(address: "10.0.0.7", requestID: "r1")
        let done = ReloadRecording(asked, isSuccess: true, digest: "d1").event
        #expect(done.kind == .reload && done.outcome == .success && done.members["digest"] == "d1")
        #expect(done.members["trigger"] == "admin" && done.members["reason"] == nil)
        #expect(done.members["address"] == "10.0.0.7" && done.members["request_id"] == "r1")
        let failed = ReloadRecording(.signal, isSuccess: false, reason: "config.bad_value").event
        #expect(failed.outcome == .failed && failed.members["trigger"] == "signal")
        #expect(failed.members["reason"] == "config.bad_value" && failed.members["digest"] == nil)
        #expect(failed.members["address"] == nil)
    }
}
