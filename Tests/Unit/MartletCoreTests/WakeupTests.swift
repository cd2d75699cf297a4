import MartletTesting
import Testing

@testable import MartletCore

@Suite(.timeLimit(.minutes(1))) struct WakeupTests {
    @Test func `ends a wait`() async {
        let wakeup = Wakeup()
        let waiting = Task { await wakeup.wait(atMost: .seconds(600)) }
        await Task.yield()
        wakeup.signal()
        await waiting.value
    }

    @Test func `stores a signal without a waiter, once`() async {
        let wakeup = Wakeup()
        wakeup.signal()
        wakeup.signal()
        await wakeup.wait(atMost: .seconds(600))
        let start = ContinuousClock.now
        await wakeup.wait(atMost: .milliseconds(50))
        #expect(ContinuousClock.now - start >= .milliseconds(50))
    }

    @Test func `ends at its limit`() async {
        await Wakeup().wait(atMost: .milliseconds(1))
    }

    @Test func `ends with its task`() async {
        let wakeup = Wakeup()
        let waiting = Task { await wakeup.wait(atMost: .seconds(600)) }
        waiting.cancel()
        await waiting.value
    }
}
