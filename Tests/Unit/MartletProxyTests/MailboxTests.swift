import MartletAuthenticator
import Testing

@testable import MartletProxy

@Suite struct MailboxTests {
    @Test func `acknowledges for a loop that has ended, messages before and after`() async throws {
        let mailbox = try Mailbox()
        let (before, after) = (LoopAcknowledgement(loops: 1), LoopAcknowledgement(loops: 1))
        mailbox.post(.credentials(.ended([1]), before))
        mailbox.close()
        mailbox.post(.credentials(.changed([1]), after))
        #expect(await before.wait(within: .seconds(10)))
        #expect(await after.wait(within: .seconds(10)))
        #expect(mailbox.drain().isEmpty)
    }
}
