import Glibc
import MartletTesting
import Testing

@testable import MartletCore

@Suite struct BlockingExecutorTests {
    @Test func `tasks that block run beside each other, on threads of their own, and no more than there may be`() async
    {
        let executor = BlockingExecutor(name: "blocking", threads: 3)
        let gate = Gate()
        let tasks = (0..<5).map { _ in Task(executorPreference: executor) { gate.block() } }
        // Three block at the same time, whatever the number of processors; this task goes on meanwhile.
        while gate.waiting < 3 { await Task.yield() }
        #expect(executor.threads == 3)
        gate.open()
        for task in tasks { await task.value }
        #expect(gate.highest == 3)
    }

    @Test func `a task returns to its executor after it has waited`() async {
        let executor = BlockingExecutor(name: "blocking", threads: 1)
        let names = await Task(executorPreference: executor) {
            let before = Self.threadName()
            await Task.yield()
            return [before, Self.threadName()]
        }.value
        #expect(names == ["blocking", "blocking"])
    }

    @Test func `threads end when they are idle, and start again`() async throws {
        let executor = BlockingExecutor(name: "blocking", threads: 2, idleTimeout: 1)
        for _ in 0..<3 {
            let value = await Task(executorPreference: executor) { 7 }.value
            #expect(value == 7)
            try await eventually("the threads end") { executor.threads == 0 }
        }
    }

    @Test func `many short tasks all run, however threads end in between`() async {
        let executor = BlockingExecutor(name: "blocking", threads: 4, idleTimeout: 0)
        let sum = await withTaskGroup(of: Int.self) { group in
            for value in 0..<500 {
                group.addTask(executorPreference: executor) {
                    await Task.yield()
                    return value
                }
            }
            return await group.reduce(0, +)
        }
        #expect(sum == 499 * 250)
    }

    private static func threadName() -> String {
        let file = unsafe open("/proc/thread-self/comm", O_RDONLY)
        defer { close(file) }
        var name = [UInt8](repeating: 0, count: 32)
        let count = unsafe read(file, &name, name.count)
        return String(decoding: name.prefix(max(count, 0)).filter { $0 != 0x0A }, as: UTF8.self)
    }
}
