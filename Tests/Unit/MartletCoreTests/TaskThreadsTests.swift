import Glibc
import MartletTesting
import Testing

@testable import MartletCore

@Suite struct `Queues of tasks` {
    private static func owner(_ member: UInt64) -> WorkOwner { WorkOwner(group: member, member: member) }

    @Test func `serve purposes in turn, and the owners within one`() {
        var queue = TaskQueue<String>()
        for number in 1...3 { queue.append("flood \(number)", for: .endpoints, of: Self.owner(1)) }
        queue.append("other", for: .endpoints, of: Self.owner(2))
        queue.append("operator", for: .operators, of: .anonymous)
        queue.append("gateway", for: .gateway, of: .anonymous)
        var served: [String] = []
        while let job = queue.popFirst() { served.append(job) }
        #expect(served == ["gateway", "operator", "flood 1", "other", "flood 2", "flood 3"])
        #expect(queue.isEmpty)
    }

    @Test func `have timers that are due in order, and those of a time as they came`() {
        var timers = TaskTimers<Int>()
        #expect(timers.earliest == nil && timers.popFirst(at: .max) == nil)
        let times: [Int64] = [5, 3, 9, 3, 1, 5, 7]
        for (index, time) in times.enumerated() { timers.append(index, at: time) }
        #expect(timers.earliest == 1)
        #expect(timers.popFirst(at: 0) == nil)
        var order: [Int] = []
        while let job = timers.popFirst(at: 5) { order.append(job) }
        #expect(order == [4, 1, 3, 0, 5])
        #expect(timers.earliest == 7)
    }

    @Test(arguments: 0..<50) func `have timers that come out sorted, whatever goes in`(seed: UInt64) {
        var random = SplitMix(state: seed)
        var timers = TaskTimers<Int64>()
        let times = (0..<Int.random(in: 0...80, using: &random)).map { _ in Int64.random(in: 0...20, using: &random) }
        for time in times { timers.append(time, at: time) }
        var popped: [Int64] = []
        while let job = timers.popFirst(at: .max) { popped.append(job) }
        #expect(popped == times.sorted())
    }
}

private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `Threads of tasks` {
    @Test func `run the tasks of a lane, also after waits`() async {
        let names = await Task(executorPreference: TaskLane(.endpoints)) {
            let before = Self.threadName()
            await Task.yield()
            // Long enough that it waits for a timer of the threads.
            let stopwatch = Stopwatch()
            try? await eventually("time passes") { stopwatch.elapsed > .milliseconds(20) }
            async let child = Self.threadName()
            return [before, Self.threadName(), await child]
        }.value
        #expect(names.allSatisfy { $0.hasPrefix("martlet-task-") }, "\(names)")
    }

    @Test func `run every task, however many lanes there are`() async {
        let sum = await withTaskGroup(of: Int.self) { group in
            for value in 0..<2000 {
                let owner = WorkOwner(group: UInt64(value % 7), member: UInt64(value))
                group.addTask(executorPreference: TaskLane(value % 2 == 0 ? .endpoints : .verification, of: owner)) {
                    await Task.yield()
                    return value
                }
            }
            return await group.reduce(0, +)
        }
        #expect(sum == 1999 * 1000)
    }

    private static func threadName() -> String {
        let file = unsafe open("/proc/thread-self/comm", O_RDONLY)
        defer { close(file) }
        var name = [UInt8](repeating: 0, count: 32)
        let count = unsafe read(file, &name, name.count)
        return String(decoding: name.prefix(max(count, 0)).filter { $0 != 0x0A }, as: UTF8.self)
    }
}

private final class Counter: Sendable {
    private let count = Lock(0)

    var value: Int { count.withLock { $0 } }
    func add(_ number: Int) { count.withLock { $0 += number } }
}

@Suite(.timeLimit(.minutes(1))) struct `Work in the background` {
    private static let pause: @Sendable () -> Duration? = { .milliseconds(1) }

    @Test func `is repeated until it is stopped, and started once`() async throws {
        let (work, steps) = (RepeatedWork(), Counter())
        for _ in 0..<3 { work.start(after: Self.pause, { steps.add(1) }) }
        try await eventually("it is repeated") { steps.value >= 3 }
        await work.stop()
        let count = steps.value
        // As long as other work takes for twenty steps.
        let (other, others) = (RepeatedWork(), Counter())
        other.start(after: Self.pause, { others.add(1) })
        try await eventually("the other work is repeated") { others.value >= 20 }
        await other.stop()
        #expect(steps.value == count)
        work.start(after: Self.pause, { steps.add(1) })
        try await eventually("it is repeated again") { steps.value > count }
        await work.stop()
    }

    @Test func `is shared by those who ask for it at the same time`() async {
        let (work, runs) = (SharedWork(), Counter())
        let gate = OnceOnly<Bool>()
        let callers = (0..<5).map { _ in
            Task {
                await work.run {
                    runs.add(1)
                    _ = await gate.value(within: .seconds(30))
                }
            }
        }
        while !work.isRunning { await Task.yield() }
        // One that is cancelled ends nothing that others wait for.
        callers[0].cancel()
        for _ in 0..<100 { await Task.yield() }
        gate.complete(true)
        for caller in callers { await caller.value }
        #expect(runs.value >= 1 && !work.isRunning)
        await work.run { runs.add(10) }
        #expect(runs.value >= 11)
    }
}

@Suite struct `Locks` {
    @Test func `protect their value`() async {
        let counter = Counter()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 { group.addTask { for _ in 0..<1000 { counter.add(1) } } }
        }
        #expect(counter.value == 4000)
    }

    @Test func `may be taken in the order of their ranks`() {
        let outer = Lock(1, .names)
        let inner = Lock(2)
        let sum = outer.withLock { one in inner.withLock { one + $0 } }
        #expect(sum == 3)
        LockOrder.requireNone(for: "calls")
    }

    #if DEBUG
    @Test func `end a debug build that takes them in another order`() async {
        await #expect(processExitsWith: .signal(SIGABRT)) {
            let outer = Lock(1, .names)
            let inner = Lock(2)
            inner.withLock { _ in outer.withLock { _ in } }
        }
        await #expect(processExitsWith: .signal(SIGABRT)) {
            let first = Lock(1)
            let second = Lock(2)
            first.withLock { _ in second.withLock { _ in } }
        }
    }

    @Test func `end a debug build that calls foreign code under one`() async {
        await #expect(processExitsWith: .signal(SIGABRT)) {
            Lock(1).withLock { _ in Logger.silent.error("written under a lock") }
        }
        await #expect(processExitsWith: .signal(SIGABRT)) {
            let task = Lock(1).withLock { _ in Task(executorPreference: TaskLane(.gateway)) {} }
            await task.value
        }
    }
    #endif
}
