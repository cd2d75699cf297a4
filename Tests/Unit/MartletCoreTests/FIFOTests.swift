import MartletCore
import Testing

@Suite struct FIFOTests {
    @Test func `returns elements in order`() {
        var queue = FIFO<Int>()
        #expect(queue.popFirst() == nil)
        var model: [Int] = []
        var taken = 0
        for number in 0..<10_000 {
            queue.append(number)
            model.append(number)
            // The queue grows, so that the array is compacted now and then.
            guard number % 5 != 0 else { continue }
            #expect(queue.popFirst() == model[taken])
            taken += 1
            #expect(queue.count == model.count - taken)
        }
        while let next = queue.popFirst() {
            #expect(next == model[taken])
            taken += 1
        }
        #expect(taken == model.count)
        #expect(queue.isEmpty)
    }

    @Test func `removes all elements`() {
        var queue = FIFO<Int>()
        for number in 0..<10 { queue.append(number) }
        for _ in 0..<3 { _ = queue.popFirst() }
        #expect(queue.popAll() == Array(3..<10))
        #expect(queue.isEmpty)
        queue.append(1)
        #expect(queue.popFirst() == 1)
    }

    @Test func `releases removed elements`() {
        final class Thing {}
        var queue = FIFO<Thing>()
        weak var first: Thing?
        do {
            let thing = Thing()
            first = thing
            queue.append(thing)
            queue.append(Thing())
        }
        #expect(first != nil)
        _ = queue.popFirst()
        #expect(first == nil)
        #expect(queue.count == 1)
    }
}
