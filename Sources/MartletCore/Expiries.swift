/// Keys in the order in which they expire: a binary heap.
struct Expiries: Sendable {
    private struct Element: Sendable {
        let time: MonotonicTime
        let key: String
    }

    private var heap: [Element] = []

    var count: Int { heap.count }

    mutating func add(_ key: String, at time: MonotonicTime) {
        heap.append(Element(time: time, key: key))
        var index = heap.count - 1
        while index > 0, heap[index].time < heap[(index - 1) / 2].time {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Removes and returns the key that expires first, if it has by then.
    mutating func popFirst(until now: MonotonicTime) -> String? {
        guard let first = heap.first, first.time <= now, let last = heap.popLast() else { return nil }
        guard !heap.isEmpty else { return first.key }
        heap[0] = last
        var index = 0
        while true {
            var least = index
            for child in (2 * index + 1)...(2 * index + 2)
            where child < heap.count && heap[child].time < heap[least].time { least = child }
            guard least != index else { return first.key }
            heap.swapAt(index, least)
            index = least
        }
    }
}
