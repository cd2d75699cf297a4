import Synchronization
import Testing

@testable import MartletServer

@Suite struct `The desk for reloads` {
    @Test func `tells whoever waits when a reload begins, and nobody else`() async {
        let begun = AsyncStream.makeStream(of: Void.self)
        let desk = ReloadDesk { begun.continuation.yield() }
        async let first = desk.ask(within: .seconds(60))
        for await _ in begun.stream { break }
        let waiting = desk.waiting()
        #expect(waiting.count == 1)
        desk.settle(waiting, .refused(["x"]))
        #expect(await first == .refused(["x"]))
        #expect(desk.waiting().isEmpty)
    }

    @Test func `lets nobody wait for ever, nor everybody`() async {
        let desk = ReloadDesk {}
        #expect(await desk.ask(within: .milliseconds(1)) == .underWay)
        let outcomes = await withTaskGroup(of: ReloadOutcome.self) { group in
            for _ in 0..<40 { group.addTask { await desk.ask(within: .milliseconds(500)) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.contains(.busy) && outcomes.contains(.underWay))
    }

    @Test func `turns all away once the process ends`() async {
        let begun = AsyncStream.makeStream(of: Void.self)
        let desk = ReloadDesk { begun.continuation.yield() }
        async let first = desk.ask(within: .seconds(60))
        for await _ in begun.stream { break }
        desk.close()
        #expect(await first == .ending)
        #expect(await desk.ask(within: .seconds(60)) == .ending)
    }
}
