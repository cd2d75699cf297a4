package import MartletCore

/// A job that a loop runs once at a deadline; cancelling it releases the job immediately.
///
/// Confined to its loop: create and cancel it there only.
package final class LoopTimer {
    package let deadline: MonotonicTime
    fileprivate var job: (() -> Void)?
    /// The index in the heap; −1 outside.
    fileprivate var index = -1
    private weak var loop: ServiceLoop?

    init(deadline: MonotonicTime, loop: ServiceLoop, job: @escaping () -> Void) {
        self.deadline = deadline
        self.loop = loop
        self.job = job
    }

    /// Cancels the timer; does nothing if it has fired already.
    package func cancel() { loop?.cancel(self) }

    /// Runs the job and releases it.
    func fire() {
        let job = self.job
        self.job = nil
        job?()
    }
}

/// The pending timers of a loop: a binary heap by deadline in which each timer knows its index.
struct TimerHeap: ~Copyable {
    private var timers: [LoopTimer] = []

    var count: Int { timers.count }
    var earliest: MonotonicTime? { timers.first?.deadline }

    mutating func insert(_ timer: LoopTimer) {
        timers.append(timer)
        timer.index = timers.count - 1
        siftUp(timers.count - 1)
    }

    /// Removes a timer and releases its job.
    mutating func remove(_ timer: LoopTimer) {
        timer.job = nil
        removeTimer(at: timer.index)
    }

    /// Removes and returns the earliest timer, if it is due.
    mutating func popDue(at now: MonotonicTime) -> LoopTimer? {
        guard let first = timers.first, first.deadline <= now else { return nil }
        removeTimer(at: 0)
        return first
    }

    mutating func removeAll() {
        for timer in timers {
            timer.index = -1
            timer.job = nil
        }
        timers.removeAll()
    }

    private mutating func removeTimer(at index: Int) {
        guard timers.indices.contains(index) else { return }
        let last = timers.count - 1
        exchange(index, last)
        timers.removeLast().index = -1
        if index < timers.count {
            siftUp(index)
            siftDown(index)
        }
    }

    private mutating func siftUp(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard timers[child].deadline < timers[parent].deadline else { return }
            exchange(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < timers.count {
                if timers[child].deadline < timers[least].deadline { least = child }
            }
            guard least != parent else { return }
            exchange(parent, least)
            parent = least
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        guard left != right else { return }
        timers.swapAt(left, right)
        timers[left].index = left
        timers[right].index = right
    }
}
