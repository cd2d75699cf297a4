import Synchronization
import Testing

@testable import MartletAdmin

@Suite struct `The reload queue` {
    @Test func `completes the requests that wait when a reload begins, and no others`() async {
        let begun = AsyncStream.makeStream(of: Void.self)
        let queue = ReloadQueue { begun.continuation.yield() }
        async let first = queue.request(as: .signal, timeout: .seconds(60))
        for await _ in begun.stream { break }
        let waiting = queue.waiting()
        #expect(waiting.count == 1)
        queue.complete(waiting, .rejected(["x"]))
        #expect(await first == .rejected(["x"]))
        #expect(queue.waiting().isEmpty)
    }

    @Test func `has a timeout and a capacity`() async {
        let queue = ReloadQueue {}
        #expect(await queue.request(as: .signal, timeout: .milliseconds(1)) == .underWay)
        let outcomes = await withTaskGroup(of: ReloadOutcome.self) { group in
            for _ in 0..<40 { group.addTask { await queue.request(as: .signal, timeout: .milliseconds(500)) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.contains(.busy) && outcomes.contains(.underWay))
    }

    @Test func `rejects all requests once the process shuts down`() async {
        let begun = AsyncStream.makeStream(of: Void.self)
        let queue = ReloadQueue { begun.continuation.yield() }
        async let first = queue.request(as: .signal, timeout: .seconds(60))
        for await _ in begun.stream { break }
        queue.close()
        #expect(await first == .ending)
        #expect(await queue.request(as: .signal, timeout: .seconds(60)) == .ending)
    }

    @Test func `knows what has asked for the reload that completes its requests`() async {
        let begun = AsyncStream.makeStream(of: Void.self)
        let queue = ReloadQueue { begun.continuation.yield() }
        #expect(queue.trigger(of: queue.waiting()) == .signal)
        let trigger = ReloadTrigger.admin(address: "10.0.0.7", requestID: "r1")
        async let first = queue.request(as: trigger, timeout: .seconds(60))
        for await _ in begun.stream { break }
        async let second = queue.request(as: .admin(address: "10.0.0.8", requestID: "r2"), timeout: .seconds(60))
        for await _ in begun.stream { break }
        let waiting = queue.waiting()
        #expect(waiting.count == 2 && queue.trigger(of: waiting) == trigger)
        queue.complete(waiting, .ending)
        #expect(queue.trigger(of: waiting) == .signal)
        _ = await (first, second)
    }
}
