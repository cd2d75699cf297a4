/// A queue in one piece of memory: the first in is the first out.
///
/// What was taken leaves nothing behind, and adding and taking cost the same whatever waits. Inlined, so that nothing is generic
/// where it is used.
@usableFromInline package struct FIFO<Element> {
    /// Places already passed before the memory is moved together.
    @inlinable static var passedLimit: Int { 1024 }

    @usableFromInline var places: [Element?] = []
    /// Those before it have been taken.
    @usableFromInline var next = 0

    @inlinable package init() {}

    @inlinable package var count: Int { places.count - next }
    @inlinable package var isEmpty: Bool { places.count == next }

    /// The one that has waited longest.
    @inlinable package var first: Element? { isEmpty ? nil : places[next] }

    /// Adds one behind the others.
    @inlinable package mutating func append(_ element: Element) { places.append(element) }

    /// Takes the one that has waited longest.
    @inlinable package mutating func popFirst() -> Element? {
        guard next < places.count else { return nil }
        let first = places[next]
        // Kept here it would live, with what it holds, until the queue is empty.
        places[next] = nil
        next += 1
        if next == places.count {
            places.removeAll(keepingCapacity: true)
            next = 0
        } else if next > Self.passedLimit {
            places.removeFirst(next)
            next = 0
        }
        return first
    }

    /// Takes the one that came last.
    @inlinable package mutating func popLast() -> Element? {
        guard next < places.count else { return nil }
        let last = places.removeLast()
        if next == places.count {
            places.removeAll(keepingCapacity: true)
            next = 0
        }
        return last
    }

    /// Takes all of them.
    @inlinable package mutating func takeAll() -> [Element] {
        let all = places[next...].compactMap { $0 }
        places = []
        next = 0
        return all
    }
}
