import MartletCore
import Synchronization
import Testing

@Suite struct ThreadPoolTests {
    private func pool(threads: Int, queue: Int = 10_000) -> ThreadPool {
        ThreadPool(.undivided, name: "martlet-test", threads: threads, queue: queue, niceness: 0, clock: .system)
    }

    @Test(arguments: [1, 2, 4])
    func `runs every job of concurrent callers exactly once`(threads: Int) async throws {
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
            // Each result arrives when the thread is about to sleep, or sleeps.
            #expect(try await pool.run(until: .never) { number } == number)
            if number % 50 == 0 { await Task.yield() }
        }
        pool.stop()
    }

    @Test func `runs another owner's job next, however many one owner has queued`() async throws {
        let pool = ThreadPool(
            .verificationThreads, name: "martlet-test", threads: 1, queue: 8, niceness: 0, clock: .system)
        let (flood, other) = (WorkOwner(group: 1, member: 1), WorkOwner(group: 2, member: 1))
        let gate = Mutex(())
        let order = Mutex<[String]>([])
        let rejected = Mutex(0)
        let isDone = AsyncStream<Void>.makeStream()
        await withCheckedContinuation { continuation in
            gate.withLock { _ in
                pool.submit(until: .never, for: flood) { _ in
                    continuation.resume()
                    gate.withLock { _ in }
                }
                while pool.waiting > 0 {}
                for number in 0..<6 {
                    pool.submit(until: .never, for: flood) { error in
                        if error == nil {
                            order.withLock { $0.append("flood \(number)") }
                        } else {
                            rejected.withLock { $0 += 1 }
                        }
                        if number == 3 { isDone.continuation.finish() }
                    }
                }
                pool.submit(until: .never, for: other) { error in
                    order.withLock { $0.append(error == nil ? "other" : "rejected") }
                }
            }
        }
        for await _ in isDone.stream {}
        #expect(rejected.withLock { $0 } == 2)
        #expect(order.withLock { $0 } == ["flood 0", "other", "flood 1", "flood 2", "flood 3"])
        pool.stop()
    }

    @Test func `rejects jobs that are too late, too many, or submitted after stop`() async {
        let pool = pool(threads: 1, queue: 1)
        await #expect(throws: ThreadPool.JobError.expired) {
            try await pool.run(until: MonotonicTime(nanoseconds: 0)) { 1 }
        }
        let gate = Mutex(())
        let errors = Mutex<[ThreadPool.JobError?]>([])
        await withCheckedContinuation { continuation in
            gate.withLock { _ in
                pool.submit(until: .never) { _ in
                    continuation.resume()
                    gate.withLock { _ in }
                }
                while pool.waiting > 0 {}
                for _ in 0..<2 { pool.submit(until: .never) { error in errors.withLock { $0.append(error) } } }
                pool.stop()
            }
        }
        #expect(errors.withLock { $0 } == [.overloaded, .stopped])
        await #expect(throws: ThreadPool.JobError.stopped) { try await pool.run(until: .never) { 1 } }
    }
}
