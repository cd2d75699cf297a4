import MartletCore
import Testing

@testable import MartletIO

@Suite struct TimerHeapTests {
    private func timers(_ deadlines: [Int64], loop: ServiceLoop) -> [LoopTimer] {
        deadlines.map { LoopTimer(deadline: MonotonicTime(nanoseconds: $0), loop: loop) {} }
    }

    private func drain(_ heap: inout TimerHeap) -> [Int64] {
        var order: [Int64] = []
        while let timer = heap.popDue(at: .never) { order.append(timer.deadline.nanoseconds) }
        return order
    }

    @Test(arguments: [
        [], [5], [3, 1, 2], [9, 8, 7, 6, 5, 4, 3, 2, 1], [1, 1, 2, 2, 0, 0, 7], [4, 9, 1, 8, 2, 7, 3, 6, 5],
    ])
    func `yields timers in the order of their deadlines`(deadlines: [Int64]) throws {
        let loop = try ServiceLoop(name: "test")
        defer { loop.shutdown() }
        var heap = TimerHeap()
        for timer in timers(deadlines, loop: loop) { heap.insert(timer) }
        #expect(heap.earliest?.nanoseconds == deadlines.min())
        #expect(drain(&heap) == deadlines.sorted())
        #expect(heap.count == 0)
    }

    @Test func `keeps its order whichever timer is removed`() throws {
        let loop = try ServiceLoop(name: "test")
        defer { loop.shutdown() }
        let deadlines: [Int64] = [4, 9, 1, 8, 2, 7, 3, 6, 5, 10]
        for victim in deadlines.indices {
            var heap = TimerHeap()
            let all = timers(deadlines, loop: loop)
            for timer in all { heap.insert(timer) }
            heap.remove(all[victim])
            heap.remove(all[victim])
            var left = deadlines
            left.remove(at: victim)
            #expect(drain(&heap) == left.sorted())
        }
    }

    @Test func `does not return timers that are not due`() throws {
        let loop = try ServiceLoop(name: "test")
        defer { loop.shutdown() }
        var heap = TimerHeap()
        for timer in timers([10, 20], loop: loop) { heap.insert(timer) }
        #expect(heap.popDue(at: MonotonicTime(nanoseconds: 9)) == nil)
        #expect(heap.popDue(at: MonotonicTime(nanoseconds: 10))?.deadline.nanoseconds == 10)
        #expect(heap.popDue(at: MonotonicTime(nanoseconds: 10)) == nil)
    }
}
