import Testing

@testable import MartletServer

@Suite struct `The watchdog` {
    @Test func `finds a loop that has not turned at several looks in a row, and that it turns again`() {
        var watch = StallWatch()
        for look in 1...20 as ClosedRange<UInt64> {
            #expect(watch.look(at: [look, look], limit: 3) == StallWatch.Change())
        }
        for _ in 1...2 { #expect(watch.look(at: [21, 20], limit: 3).stalled.isEmpty) }
        #expect(watch.look(at: [22, 20], limit: 3) == StallWatch.Change(stalled: [1]))
        #expect(watch.isStalled)
        // Once, however long it takes.
        #expect(watch.look(at: [23, 20], limit: 3) == StallWatch.Change() && watch.isStalled)
        #expect(watch.look(at: [24, 21], limit: 3) == StallWatch.Change(recovered: [1]))
        #expect(!watch.isStalled)
    }

    @Test func `does not take a process for stalled that was stopped as a whole`() {
        var watch = StallWatch()
        _ = watch.look(at: [1], limit: 2)
        // However long the pause was, it is one look.
        #expect(watch.look(at: [1], limit: 2) == StallWatch.Change())
        #expect(watch.look(at: [2], limit: 2) == StallWatch.Change())
        #expect(watch.look(at: [2], limit: 2) == StallWatch.Change())
    }

    @Test(
        arguments: [
            (10_000, nil, 1000, 10), (1000, nil, 100, 10), (600_000, nil, 60_000, 10), (10_000, 3000, 1000, 10),
            (600_000, 30_000, 10_000, 60), (10_000, 300, 100, 100), (100, 1, 20, 5),
        ] as [(Int64, Int64?, Int64, Int)])
    func `looks ten times within the limit, and as often as the service manager listens`(
        limit: Int64, interval: Int64?, pause: Int64, looks: Int
    ) {
        let pace = Watchdog.pace(limit, notifyingEvery: interval)
        #expect(pace.pause == pause && pace.looks == looks)
    }
}
