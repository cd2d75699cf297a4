package import MartletCore

/// A job that a loop runs once when its time has come; cancelled it is gone at once, with all it holds.
///
/// Belongs to its loop: make and cancel it there only.
package final class LoopTimer {
    package let deadline: MonotonicTime
    fileprivate var job: (() -> Void)?
    /// Where it stands in the heap; −1 outside.
    fileprivate var position = -1
    private weak var loop: EventLoop?

    init(deadline: MonotonicTime, loop: EventLoop, job: @escaping () -> Void) {
        self.deadline = deadline
        self.loop = loop
        self.job = job
    }

    /// Takes the timer back.
    ///
    /// Nothing happens if it has run already.
    package func cancel() { loop?.cancel(self) }

    /// Runs the job and lets go of it.
    func fire() {
        let job = self.job
        self.job = nil
        job?()
    }
}

/// The waiting timers of a loop, earliest first: a binary heap in which each timer knows its place.
struct TimerHeap: ~Copyable {
    private var timers: [LoopTimer] = []

    var count: Int { timers.count }
    var earliest: MonotonicTime? { timers.first?.deadline }

    mutating func insert(_ timer: LoopTimer) {
        timers.append(timer)
        timer.position = timers.count - 1
        rise(timers.count - 1)
    }

    /// Takes a timer out, wherever it stands, and drops its job.
    mutating func remove(_ timer: LoopTimer) {
        timer.job = nil
        takeOut(timer.position)
    }

    /// The earliest timer, taken out, if it is due.
    mutating func popDue(at now: MonotonicTime) -> LoopTimer? {
        guard let first = timers.first, first.deadline <= now else { return nil }
        takeOut(0)
        return first
    }

    mutating func removeAll() {
        for timer in timers {
            timer.position = -1
            timer.job = nil
        }
        timers.removeAll()
    }

    private mutating func takeOut(_ position: Int) {
        guard timers.indices.contains(position) else { return }
        let last = timers.count - 1
        exchange(position, last)
        timers.removeLast().position = -1
        if position < timers.count {
            rise(position)
            sink(position)
        }
    }

    private mutating func rise(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard timers[child].deadline < timers[parent].deadline else { return }
            exchange(child, parent)
            child = parent
        }
    }

    private mutating func sink(_ start: Int) {
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
        timers[left].position = left
        timers[right].position = right
    }
}
