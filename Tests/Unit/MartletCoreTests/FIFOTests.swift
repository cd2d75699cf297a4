import MartletCore
import Testing

@Suite struct FIFOTests {
    @Test func `gives back what came first`() {
        var queue = FIFO<Int>()
        #expect(queue.popFirst() == nil)
        var model: [Int] = []
        var taken = 0
        for number in 0..<10_000 {
            queue.append(number)
            model.append(number)
            // Falls behind, so that what was passed has to be thrown away now and then.
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

    @Test func `gives away everything at once`() {
        var queue = FIFO<Int>()
        for number in 0..<10 { queue.append(number) }
        for _ in 0..<3 { _ = queue.popFirst() }
        #expect(queue.takeAll() == Array(3..<10))
        #expect(queue.isEmpty)
        queue.append(1)
        #expect(queue.popFirst() == 1)
    }

    @Test func `keeps nothing of what was taken`() {
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
