import Testing

@testable import MartletAuthenticator

@Suite struct RevocationSweepTests {
    private let start: Int64 = 1_000_000_000

    @Test func `is due immediately, then after the interval, with everything added meanwhile`() {
        var sweep = RevocationSweep()
        #expect(sweep.dequeue(at: start)?.revocationIDs == nil && sweep.isEmpty)
        sweep.add(.ended([1, 2]), nil)
        #expect(!sweep.isEmpty)
        #expect(sweep.dequeue(at: start)?.revocationIDs == [1, 2])
        #expect(sweep.isEmpty && sweep.dequeue(at: start + RevocationSweep.interval)?.revocationIDs == nil)
        sweep.add(.ended([3]), nil)
        sweep.add(.ended([4, 3]), nil)
        #expect(sweep.dequeue(at: start + RevocationSweep.interval - 1)?.revocationIDs == nil)
        #expect(sweep.dequeue(at: start + RevocationSweep.interval)?.revocationIDs == [3, 4])
    }

    @Test func `returns each acknowledgement once`() async {
        var sweep = RevocationSweep()
        let waiting = LoopAcknowledgement(loops: 1)
        sweep.add(.ended([1]), waiting)
        let due = sweep.dequeue(at: start)
        #expect(due?.acknowledgements.count == 1)
        for acknowledgement in due?.acknowledgements ?? [] { acknowledgement.acknowledge() }
        #expect(await waiting.wait(within: .seconds(10)))
        sweep.add(.ended([1]), nil)
        #expect(sweep.dequeue(at: start * 2)?.acknowledgements.isEmpty == true)
    }

    @Test func `acknowledges immediately when there is nothing to remove`() async {
        var sweep = RevocationSweep()
        let waiting = LoopAcknowledgement(loops: 1)
        sweep.add(.ended([]), waiting)
        #expect(sweep.isEmpty && sweep.dequeue(at: start)?.revocationIDs == nil)
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

    @Test func `waits no longer than its timeout`() async {
        let acknowledgement = LoopAcknowledgement(loops: 2)
        acknowledgement.acknowledge()
        #expect(await !acknowledgement.wait(within: .milliseconds(20)))
    }

    @Test func `waits for no loops`() async {
        #expect(await LoopAcknowledgement(loops: 0).wait(within: .seconds(10)))
    }
}
