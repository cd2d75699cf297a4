/// A simulated process: the owner of threads and descriptors, and of what it prints.
///
/// All processes of a world share one address space. What keeps them apart is who asks: a thread belongs to the process
/// whose thread made it, and the threads that run tasks take the process of the task.
package final class Process {
    package let id: Int
    package let name: String
    /// Added to the wall clock of the world, in nanoseconds.
    package var clockOffset: Int64 = 0
    /// The address of its machine.
    package var host: UInt32
    /// The most descriptors that it may have open.
    package var descriptorLimit = Process.usualDescriptorLimit
    package static let usualDescriptorLimit = 4096
    package internal(set) var descriptors = 0
    /// Whether it has exited or was killed.
    package internal(set) var isDead = false
    /// The status that it exited with.
    package internal(set) var status: Int?
    /// Gets what it writes to its standard output and error.
    package var printed: (UnsafeRawBufferPointer, _ isError: Bool) -> Void = { _, _ in }
    /// What a write to standard output fails with; 0 for none.
    package var outputError: Int32 = 0
    /// What writing and flushing files fail with; 0 for none.
    package var diskError: Int32 = 0
    /// What adding a file to a poller fails with; 0 for none.
    package var watchError: Int32 = 0
    /// What fails next, and with which errno.
    package var faults: [Fault: Int32] = [:]
    package var ended: (Process) -> Void = { _ in }
    var pendingSignals: [Int] = []
    var signalWaiters: [Waiter] = []

    /// Which process the code of a task works for.
    @TaskLocal package static var current: Process?

    package init(id: Int, name: String) {
        self.id = id
        self.name = name
        host = 0x0a00_0000 + UInt32(id)
    }
}

// @unchecked Sendable: one thread runs at a time.
extension Process: @unchecked Sendable {}

/// A thread of the world.
final class WorldThread {
    let number: Int
    /// `nil` for threads that work for several.
    let owner: Process?
    var isRunnable = true
    var hasEnded = false
    /// The number of its waits, so that who wakes it for one does not wake it from another.
    var waits = 0
    var joiners: [Waiter] = []
    /// Whether its last wait reached its deadline.
    var isLate = false

    init(number: Int, owner: Process?) {
        self.number = number
        self.owner = owner
    }
}

/// One wait of a thread.
struct Waiter {
    let thread: WorldThread
    let wait: Int

    var isWaiting: Bool { !thread.isRunnable && thread.waits == wait && !thread.hasEnded }
}
