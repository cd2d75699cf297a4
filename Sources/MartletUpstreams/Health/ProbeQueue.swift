internal import MartletCore

/// Which target is to be probed next: a binary heap by time, and by number where times are equal.
struct ProbeQueue {
    private struct Item {
        let due: MonotonicTime
        let target: Int

        static func < (left: Item, right: Item) -> Bool {
            left.due == right.due ? left.target < right.target : left.due < right.due
        }
    }

    private var items: [Item] = []

    var count: Int { items.count }
    var nextDue: MonotonicTime? { items.first?.due }

    mutating func insert(_ target: Int, due: MonotonicTime) {
        items.append(Item(due: due, target: target))
        var child = items.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard items[child] < items[parent] else { return }
            items.swapAt(child, parent)
            child = parent
        }
    }

    /// Removes and returns the next target and its time, if it is due.
    mutating func popDue(at now: MonotonicTime) -> (target: Int, due: MonotonicTime)? {
        guard let first = items.first, first.due <= now else { return nil }
        items.swapAt(0, items.count - 1)
        items.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < items.count {
                if items[child] < items[least] { least = child }
            }
            guard least != parent else { break }
            items.swapAt(parent, least)
            parent = least
        }
        return (first.target, first.due)
    }
}
