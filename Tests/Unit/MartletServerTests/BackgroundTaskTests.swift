import MartletTesting
import Testing

@testable import MartletServer

@Suite struct BackgroundTaskTests {
    @Test func `is started once, and waited for until it has ended`() async {
        let (task, starts, ends) = (BackgroundTask(), Box(0), Box(0))
        for _ in 0..<2 {
            task.start {
                starts.withLock { $0 += 1 }
                while !Task.isCancelled { await Task.yield() }
                ends.withLock { $0 += 1 }
            }
        }
        await task.end()
        #expect(starts.value == 1 && ends.value == 1)
    }

    @Test func `one that was not started has ended`() async {
        let task = BackgroundTask()
        task.cancel()
        await task.end()
    }
}
