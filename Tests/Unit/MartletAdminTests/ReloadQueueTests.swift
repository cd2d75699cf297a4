import Synchronization
import Testing

@testable import MartletAdmin

@Suite struct `The reload queue` {
    @Test func `completes the requests that wait when a reload begins, and no others`() async {
        let begun = AsyncStream.makeStream(of: Void.self)
        let queue = ReloadQueue { begun.continuation.yield() }
        async let first = queue.request(timeout: .seconds(60))
        for await _ in begun.stream { break }
        let waiting = queue.waiting()
        #expect(waiting.count == 1)
        queue.complete(waiting, .rejected(["x"]))
        #expect(await first == .rejected(["x"]))
        #expect(queue.waiting().isEmpty)
    }

    @Test func `has a timeout and a capacity`() async {
        let queue = ReloadQueue {}
        #expect(await queue.request(timeout: .milliseconds(1)) == .underWay)
        let outcomes = await withTaskGroup(of: ReloadOutcome.self) { group in
            for _ in 0..<40 { group.addTask { await queue.request(timeout: .milliseconds(500)) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.contains(.busy) && outcomes.contains(.underWay))
    }

    @Test func `rejects all requests once the process shuts down`() async {
        let begun = AsyncStream.makeStream(of: Void.self)
        let queue = ReloadQueue { begun.continuation.yield() }
        async let first = queue.request(timeout: .seconds(60))
        for await _ in begun.stream { break }
        queue.close()
        #expect(await first == .ending)
        #expect(await queue.request(timeout: .seconds(60)) == .ending)
    }
}
