import MartletCore
import MartletTesting
import Testing

@testable import MartletAccounts

@Suite struct `The health of an account store` {
    @Test func `has the detail of an outage until it ends`() {
        let recorder = AccountHealthRecorder(clock: .system, logger: .silent)
        recorder.unavailable(.unavailable("accounts.test", "connection timed out"))
        #expect(recorder.health.state == .unavailable && recorder.health.detail == "connection timed out")
        recorder.ready()
        #expect(recorder.health.state == .ready && recorder.health.detail == "")
    }

    @Test func `has the reason for which calls fail, and the log once, whatever works meanwhile`() {
        let log = LogRecorder()
        let recorder = AccountHealthRecorder(clock: .system, logger: Logger(log, minimum: .debug))
        recorder.ready()
        recorder.count(.unavailable(.accountsFailed, "no table"), of: [.findUser], since: recorder.now)
        for _ in 0..<9 { recorder.count(nil, of: [.users], since: recorder.now) }
        #expect(recorder.health.state == .degraded)
        #expect(recorder.health.detail == "calls fail: no table [accounts.failed]")
        recorder.count(.unavailable(.accountsFull, "no space"), of: [.findUser], since: recorder.now)
        let lines = log.lines
        #expect(lines.count == 2 && lines.allSatisfy { $0["unlogged"] == nil }, "\(lines)")
        recorder.count(nil, of: [.findUser], since: recorder.now)
        #expect(recorder.health.state == .ready && log.lines.count == 3)
    }
}
