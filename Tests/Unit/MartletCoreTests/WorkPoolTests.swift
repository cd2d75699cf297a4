import MartletCore
import Synchronization
import Testing

@Suite struct WorkPoolTests {
    private func pool(threads: Int, queue: Int = 10_000) -> WorkPool {
        WorkPool(name: "martlet-test", threads: threads, queue: queue, niceness: 0, clock: .system)
    }

    @Test(arguments: [1, 2, 4])
    func `does all that many hand in, each once`(threads: Int) async throws {
        let pool = pool(threads: threads)
        let done = try await withThrowingTaskGroup(of: [Int].self) { group in
            for source in 0..<8 {
                group.addTask {
                    var done: [Int] = []
                    for number in 0..<200 {
                        done.append(try await pool.run(until: .never) { source * 1000 + number })
                    }
                    return done
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(done.count == 1600)
        #expect(Set(done).count == 1600)
        #expect(pool.waiting == 0)
        pool.stop()
    }

    @Test func `wakes a thread after it has slept`() async throws {
        let pool = pool(threads: 1)
        for number in 0..<200 {
            // Each answer comes when the thread is about to sleep, or sleeps.
            #expect(try await pool.run(until: .never) { number } == number)
            if number % 50 == 0 { await Task.yield() }
        }
        pool.stop()
    }

    @Test func `does other people's work next, however much one owner has handed in`() async throws {
        let pool = WorkPool(
            name: "martlet-test", threads: 1, queue: 8, perMember: 4, niceness: 0, clock: .system)
        let (flood, other) = (WorkOwner(group: 1, member: 1), WorkOwner(group: 2, member: 1))
        let gate = Mutex(())
        let order = Mutex<[String]>([])
        let refused = Mutex(0)
        let isDone = AsyncStream<Void>.makeStream()
        await withCheckedContinuation { continuation in
            gate.withLock { _ in
                pool.submit(until: .never, for: flood) { _ in
                    continuation.resume()
                    gate.withLock { _ in }
                }
                while pool.waiting > 0 {}
                for number in 0..<6 {
                    pool.submit(until: .never, for: flood) { refusal in
                        if refusal == nil {
                            order.withLock { $0.append("flood \(number)") }
                        } else {
                            refused.withLock { $0 += 1 }
                        }
                        if number == 3 { isDone.continuation.finish() }
                    }
                }
                pool.submit(until: .never, for: other) { refusal in
                    order.withLock { $0.append(refusal == nil ? "other" : "refused") }
                }
            }
        }
        for await _ in isDone.stream {}
        #expect(refused.withLock { $0 } == 2)
        #expect(order.withLock { $0 } == ["flood 0", "other", "flood 1", "flood 2", "flood 3"])
        pool.stop()
    }

    @Test func `refuses what is too late, too much, or after the end`() async {
        let pool = pool(threads: 1, queue: 1)
        await #expect(throws: WorkPool.Refusal.expired) {
            try await pool.run(until: MonotonicTime(nanoseconds: 0)) { 1 }
        }
        let gate = Mutex(())
        let refusals = Mutex<[WorkPool.Refusal?]>([])
        await withCheckedContinuation { continuation in
            gate.withLock { _ in
                pool.submit(until: .never) { _ in
                    continuation.resume()
                    gate.withLock { _ in }
                }
                while pool.waiting > 0 {}
                for _ in 0..<2 { pool.submit(until: .never) { refusal in refusals.withLock { $0.append(refusal) } } }
                pool.stop()
            }
        }
        #expect(refusals.withLock { $0 } == [.overloaded, .stopped])
        await #expect(throws: WorkPool.Refusal.stopped) { try await pool.run(until: .never) { 1 } }
    }
}
