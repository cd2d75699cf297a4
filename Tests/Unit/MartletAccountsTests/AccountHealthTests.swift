import MartletCore
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
}
