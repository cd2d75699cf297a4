/// What a task is for. Purposes take turns, so that no purpose waits behind all tasks of another.
@frozen package enum TaskPurpose: Int, Sendable, CaseIterable {
    /// The gateway's own work: providers, stores, jobs, names, and everything else that is not named here.
    case gateway
    /// Requests of operators and of health checks.
    case operators
    /// Requests for the gateway's own endpoints, by client network.
    case endpoints
    /// Verifications of credentials that wait for something, by client network.
    case verification
}

/// Jobs of tasks that wait for a thread: purposes take turns, and the owners within one, as in ``FairQueue``.
///
/// It has no bound of its own, because a job that is refused would be a task that never ends: whoever starts tasks limits
/// them.
struct TaskQueue<Job> {
    private var lanes = TaskPurpose.allCases.map { _ in FairQueue<Job>(.behind(.tasks)) }
    private var next = 0

    var isEmpty: Bool { lanes.allSatisfy { $0.count == 0 } }

    mutating func append(_ job: Job, for purpose: TaskPurpose, of owner: WorkOwner) {
        _ = lanes[purpose.rawValue].append(job, of: owner)
    }

    /// Removes and returns the job whose turn it is.
    mutating func popFirst() -> Job? {
        for _ in lanes.indices {
            let index = next
            next = (next + 1) % lanes.count
            if lanes[index].count > 0, let job = lanes[index].popFirst() { return job }
        }
        return nil
    }
}

/// Jobs with a time before which they must not run, the earliest first: a binary heap.
struct TaskTimers<Job> {
    private struct Timer {
        let due: Int64
        /// Jobs of the same time are served in the order in which they came.
        let number: UInt64
        let job: Job

        func isBefore(_ other: Timer) -> Bool { due == other.due ? number < other.number : due < other.due }
    }

    private var heap: [Timer] = []
    private var last: UInt64 = 0

    /// When the first one is due, in nanoseconds; `nil` if there is none.
    var earliest: Int64? { heap.first?.due }

    mutating func append(_ job: Job, at due: Int64) {
        last &+= 1
        heap.append(Timer(due: due, number: last, job: job))
        var index = heap.count - 1
        while index > 0, heap[index].isBefore(heap[(index - 1) / 2]) {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Removes and returns the first job, if it is due.
    mutating func popFirst(at now: Int64) -> Job? {
        guard let first = heap.first, first.due <= now else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var index = 0
        while true {
            var smallest = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count && heap[child].isBefore(heap[smallest])
            {
                smallest = child
            }
            guard smallest != index else { return first.job }
            heap.swapAt(index, smallest)
            index = smallest
        }
    }
}
