import Testing

@testable import MartletProxy

@Suite struct RevocationSweepTests {
    private let start: Int64 = 1_000_000_000

    @Test func `is due at once, and then after a while, with all that came`() {
        var sweep = RevocationSweep()
        #expect(sweep.take(at: start)?.numbers == nil && sweep.isEmpty)
        sweep.add([1, 2], nil)
        #expect(!sweep.isEmpty)
        #expect(sweep.take(at: start)?.numbers == [1, 2])
        #expect(sweep.isEmpty && sweep.take(at: start + RevocationSweep.interval)?.numbers == nil)
        sweep.add([3], nil)
        sweep.add([4, 3], nil)
        #expect(sweep.take(at: start + RevocationSweep.interval - 1)?.numbers == nil)
        #expect(sweep.take(at: start + RevocationSweep.interval)?.numbers == [3, 4])
    }

    @Test func `gives back who waits, once`() async {
        var sweep = RevocationSweep()
        let waiting = LoopAcknowledgement(loops: 1)
        sweep.add([1], waiting)
        let due = sweep.take(at: start)
        #expect(due?.acknowledgements.count == 1)
        for acknowledgement in due?.acknowledgements ?? [] { acknowledgement.acknowledge() }
        #expect(await waiting.wait(within: .seconds(10)))
        sweep.add([1], nil)
        #expect(sweep.take(at: start * 2)?.acknowledgements.isEmpty == true)
    }

    @Test func `lets nobody wait for nothing`() async {
        var sweep = RevocationSweep()
        let waiting = LoopAcknowledgement(loops: 1)
        sweep.add([], waiting)
        #expect(sweep.isEmpty && sweep.take(at: start)?.numbers == nil)
        #expect(await waiting.wait(within: .seconds(10)))
    }
}

@Suite struct LoopAcknowledgementTests {
    @Test func `waits for every loop`() async {
        let acknowledgement = LoopAcknowledgement(loops: 3)
        for _ in 0..<2 { acknowledgement.acknowledge() }
        Task { acknowledgement.acknowledge() }
        #expect(await acknowledgement.wait(within: .seconds(10)))
    }

    @Test func `waits no longer than it is told to`() async {
        let acknowledgement = LoopAcknowledgement(loops: 2)
        acknowledgement.acknowledge()
        #expect(await !acknowledgement.wait(within: .milliseconds(20)))
    }

    @Test func `waits for no loops`() async {
        #expect(await LoopAcknowledgement(loops: 0).wait(within: .seconds(10)))
    }

    @Test func `is given for a loop that has ended, before and after`() async throws {
        let mailbox = try Mailbox()
        let (before, after) = (LoopAcknowledgement(loops: 1), LoopAcknowledgement(loops: 1))
        mailbox.revoked([1], before)
        mailbox.close()
        mailbox.revoked([1], after)
        #expect(await before.wait(within: .seconds(10)))
        #expect(await after.wait(within: .seconds(10)))
        #expect(mailbox.drain().isEmpty)
    }
}
