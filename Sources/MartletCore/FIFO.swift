/// A first-in, first-out queue in one array; appending and removing are amortized O(1).
///
/// Inlinable, so that each use is specialized.
@frozen @usableFromInline package struct FIFO<Element> {
    /// The number of removed elements at the front after which the array is compacted.
    @inlinable static var compactionThreshold: Int { 1024 }

    @usableFromInline var slots: [Element?] = []
    /// The index of the first element; the slots before it are empty.
    @usableFromInline var head = 0

    @inlinable package init() {}

    @inlinable package var count: Int { slots.count - head }
    @inlinable package var isEmpty: Bool { slots.count == head }

    /// The oldest element.
    @inlinable package var first: Element? { isEmpty ? nil : slots[head] }

    /// Appends an element.
    @inlinable package mutating func append(_ element: Element) { slots.append(element) }

    /// Removes and returns the oldest element.
    @inlinable package mutating func popFirst() -> Element? {
        guard head < slots.count else { return nil }
        let first = slots[head]
        // Release the element now instead of when the slot is reused.
        slots[head] = nil
        head += 1
        if head == slots.count {
            slots.removeAll(keepingCapacity: true)
            head = 0
        } else if head > Self.compactionThreshold {
            slots.removeFirst(head)
            head = 0
        }
        return first
    }

    /// Removes and returns the newest element.
    @inlinable package mutating func popLast() -> Element? {
        guard head < slots.count else { return nil }
        let last = slots.removeLast()
        if head == slots.count {
            slots.removeAll(keepingCapacity: true)
            head = 0
        }
        return last
    }

    /// All elements, oldest first.
    @inlinable package var elements: [Element] { slots[head...].compactMap { $0 } }

    /// Removes and returns all elements, oldest first.
    @inlinable package mutating func popAll() -> [Element] {
        let all = elements
        slots = []
        head = 0
        return all
    }
}
