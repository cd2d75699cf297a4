import Testing

@testable import MartletCore

@Suite struct FairQueueTests {
    private typealias Queue = FairQueue<String>

    private static func owner(_ group: UInt64, _ member: UInt64 = 0) -> WorkOwner {
        WorkOwner(group: group, member: member)
    }

    private static func queue(total: Int = 100, group: Int = 100, member: Int = 100) -> Queue {
        Queue(Queue.Limits(total: total, group: group, member: member))
    }

    /// Appends an element and returns the result as text.
    private static func add(_ element: String, _ owner: WorkOwner, to queue: inout Queue) -> String {
        switch queue.append(element, of: owner) {
        case .queued: "queued"
        case .rejected: "rejected"
        case .queuedInsteadOf(let other): "instead of \(other)"
        }
    }

    @Test func `serves one owner in order`() {
        var queue = Self.queue()
        for number in 0..<5 { #expect(Self.add("\(number)", .anonymous, to: &queue) == "queued") }
        #expect(queue.count == 5)
        #expect(queue.popFirst() == "0")
        #expect(queue.popAll() == ["1", "2", "3", "4"])
        #expect(queue.count == 0 && queue.popFirst() == nil)
    }

    @Test func `serves groups in turn, and members of a group in turn`() {
        var queue = Self.queue()
        for name in ["a1", "a2", "a3", "a4"] { _ = Self.add(name, Self.owner(1, 1), to: &queue) }
        _ = Self.add("b1", Self.owner(1, 2), to: &queue)
        _ = Self.add("c1", Self.owner(2, 1), to: &queue)
        _ = Self.add("c2", Self.owner(2, 1), to: &queue)
        #expect(queue.popAll() == ["a1", "c1", "b1", "c2", "a2", "a3", "a4"])
    }

    @Test func `limits a member and a group to their shares`() {
        var queue = Self.queue(total: 10, group: 3, member: 2)
        #expect(Self.add("a1", Self.owner(1, 1), to: &queue) == "queued")
        #expect(Self.add("a2", Self.owner(1, 1), to: &queue) == "queued")
        #expect(Self.add("a3", Self.owner(1, 1), to: &queue) == "rejected")
        #expect(Self.add("b1", Self.owner(1, 2), to: &queue) == "queued")
        #expect(Self.add("b2", Self.owner(1, 2), to: &queue) == "rejected")
        #expect(Self.add("c1", Self.owner(2, 1), to: &queue) == "queued")
        _ = queue.popFirst()
        #expect(Self.add("b2", Self.owner(1, 2), to: &queue) == "queued")
    }

    @Test func `displaces an element of the largest group when full`() {
        var queue = Self.queue(total: 6)
        for name in ["a1", "a2", "a3"] { _ = Self.add(name, Self.owner(1, 1), to: &queue) }
        _ = Self.add("b1", Self.owner(1, 2), to: &queue)
        for name in ["c1", "c2"] { _ = Self.add(name, Self.owner(2, 1), to: &queue) }
        #expect(Self.add("d1", Self.owner(3, 1), to: &queue) == "instead of a3")
        #expect(Self.add("a4", Self.owner(1, 1), to: &queue) == "rejected")
        #expect(Self.add("d2", Self.owner(3, 1), to: &queue) == "instead of a2")
        #expect(!queue.hasCapacity(for: Self.owner(3, 1)))
        #expect(Self.add("d3", Self.owner(3, 1), to: &queue) == "rejected", "all have the same")
        #expect(queue.hasCapacity(for: Self.owner(4)))
        #expect(queue.count == 6)
        #expect(queue.popAll() == ["a1", "c1", "d1", "b1", "c2", "d2"])
    }

    @Test func `removes owners without elements`() {
        var queue = Self.queue(total: 2)
        for (member, name) in ["a1", "a2"].enumerated() {
            _ = Self.add(name, Self.owner(1, UInt64(member)), to: &queue)
        }
        // One member of the first group is left without anything, but still has its turn.
        let outcome = Self.add("b1", Self.owner(2), to: &queue)
        #expect(["instead of a1", "instead of a2"].contains(outcome))
        #expect(queue.popFirst()?.first == "a")
        #expect(queue.popAll() == ["b1"])
        for round in 0..<1000 {
            #expect(Self.add("x", Self.owner(UInt64(round), 1), to: &queue) == "queued")
            #expect(queue.popFirst() == "x")
        }
        #expect(queue.count == 0 && queue.popFirst() == nil)
    }

    @Test func `accepts a new owner while one group floods it`() {
        var queue = Self.queue(total: 256, group: 128, member: 64)
        for member in 0..<1000 { _ = Self.add("flood", Self.owner(UInt64(1 + member % 2), UInt64(member)), to: &queue) }
        #expect(queue.count == 256)
        #expect(Self.add("other", Self.owner(7), to: &queue) == "instead of flood")
        let order = queue.popAll()
        #expect(order.count == 256 && order.prefix(3).contains("other"))
    }

    @Test func `gives up elements wherever they are, and the others keep their order`() {
        var queue = Self.queue(total: 6, member: 3)
        for name in ["a1", "a2", "a3"] { _ = Self.add(name, Self.owner(1, 1), to: &queue) }
        for name in ["b1", "b2"] { _ = Self.add(name, Self.owner(2, 1), to: &queue) }
        queue.removeAll { $0 == "a2" || $0.hasPrefix("b") }
        #expect(queue.count == 2)
        // What is given up counts for no one's share.
        #expect(Self.add("a4", Self.owner(1, 1), to: &queue) == "queued")
        #expect(Self.add("b3", Self.owner(2, 1), to: &queue) == "queued")
        #expect(queue.popAll() == ["a1", "b3", "a3", "a4"])
        queue.removeAll { _ in true }
        #expect(queue.count == 0 && queue.popFirst() == nil)
    }
}
