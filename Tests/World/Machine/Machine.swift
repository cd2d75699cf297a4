import CWorld

/// The simulated machine: its time, its threads of which one runs at a time, and what is to happen when.
///
/// Whichever thread has nothing to do looks for what happens next: another thread that can go on, or, if there is none,
/// the next event, up to which time passes at one stroke.
package final class Machine {
    /// The machine of this process.
    package nonisolated(unsafe) static var current: Machine?

    /// When worlds begin, in nanoseconds.
    private static let beginning: Int64 = 1_000_000_000

    package var random: SeededRandom
    package var trace = Trace()
    /// The time of the world, in nanoseconds.
    package private(set) var now = Machine.beginning
    /// What the monotonic clock shows at 0: the time that former worlds have taken.
    private(set) var past: Int64 = 0
    /// What the wall clock shows at 0, in nanoseconds since 1970.
    package var epoch: Int64 = 1_800_000_000_000_000_000
    package private(set) var systemCalls = 0
    package private(set) var switches = 0
    /// The most system calls of a world.
    package var systemCallLimit = 4_000_000
    /// How often a thread has to let others run after a system call, in a thousand.
    package var preemption = 60
    /// Set when the world cannot go on.
    package private(set) var failure: String?

    package private(set) var network: Network
    let descriptors: Descriptors
    /// Where the files below `/world` are.
    package var folder = ""
    /// What Linux itself would be: threads that work for all.
    let shared = Process(id: 0, name: "shared")
    var futexes: [UInt: [Waiter]] = [:]
    private var threads: [WorldThread]
    private var runnable: [WorldThread] = []
    private var running: WorldThread
    private var events = EventHeap()
    private var driverWait: Waiter?

    package init() {
        random = SeededRandom(seed: 0, part: "machine")
        network = Network(SeededRandom(seed: 0, part: "network"))
        descriptors = Descriptors()
        running = WorldThread(number: 0, owner: nil)
        threads = [running]
        network.machine = self
        descriptors.openConsoles(self)
    }

    /// Makes the calling thread the first of the machine.
    package func start() -> Bool {
        Machine.current = self
        var kernel = world_kernel(
            call: { Machine.current?.handle(Int($1), $2) ?? -38 },
            start: { _ in Machine.current?.startThread() ?? -11 },
            run: { Machine.run(Int($0), $1, $2) },
            join: { Machine.current?.join(Int($1)) },
            clock: { Machine.current?.clock($1) ?? 0 },
            random: { Machine.current?.fill(UnsafeMutableRawBufferPointer(start: $0, count: $1)) })
        return world_open(&kernel) == 0
    }

    /// Has a world begin. Threads that work for all stay, and with them what the program has made once for all worlds.
    package func begin(seed: UInt64) {
        random = SeededRandom(seed: seed, part: "machine")
        network = Network(SeededRandom(seed: seed, part: "network"))
        network.machine = self
        let elapsed = now - Machine.beginning
        past += elapsed
        now = Machine.beginning
        events.leaveWaits(earlierBy: elapsed)
        trace = Trace()
        systemCalls = 0
        switches = 0
    }

    // MARK: Time

    /// Has something happen after a time, in nanoseconds.
    package func after(_ delay: Int64, _ action: @escaping () -> Void) { at(now + max(delay, 0), action) }

    package func at(_ time: Int64, _ action: @escaping () -> Void) { events.insert(max(time, now), .act(action)) }

    func clock(_ clock: Int32) -> Int64 {
        // Computing takes time, too.
        now += 20
        return clock == 0 ? epoch + now + process.clockOffset : past + now
    }

    package var wallTime: Int64 { epoch + now }

    func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: random.next()) }
    }

    // MARK: Threads

    var runningNumber: Int { running.number }

    /// The process that the running thread works for.
    package var process: Process { running.owner ?? Process.current ?? shared }

    /// Runs product code on the calling thread, the first.
    package func enter(_ body: () -> Void) {
        world_enter()
        body()
        world_leave()
    }

    /// Runs code of the world on a thread that is in it: its system calls are Linux's.
    package func leave(_ body: () -> Void) {
        world_leave()
        body()
        world_enter()
    }

    /// Lets the world go on until ``stop()``, or until nothing is left that could happen.
    /// - Returns: whether it was stopped.
    package func run() -> Bool {
        let waiter = beginWait()
        driverWait = waiter
        wait(until: nil)
        driverWait = nil
        return failure == nil
    }

    /// Has ``run()`` return.
    package func stop() { if let driverWait { wake(driverWait) } }

    /// Ends the world for a reason.
    package func fail(_ reason: String) {
        if failure == nil { failure = reason }
        stop()
    }

    private func startThread() -> Int32 {
        let owner = running.owner ?? Process.current
        let thread = WorldThread(number: threads.count, owner: owner)
        threads.append(thread)
        runnable.append(thread)
        return Int32(thread.number)
    }

    private static func run(
        _ number: Int, _ body: (@convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?)?,
        _ context: UnsafeMutableRawPointer?
    ) {
        guard let machine = Machine.current else { return }
        let thread = machine.threads[number]
        Process.$current.withValue(thread.owner) {
            world_enter()
            _ = body?(context)
            world_leave()
        }
        machine.end(thread)
    }

    private func end(_ thread: WorldThread) {
        thread.hasEnded = true
        thread.isRunnable = false
        for joiner in thread.joiners { wake(joiner) }
        while true { if let next = nextThread() { turn(to: next) } }
    }

    private func join(_ number: Int) {
        guard threads.indices.contains(number) else { return }
        let thread = threads[number]
        while !thread.hasEnded {
            thread.joiners.append(beginWait())
            wait(until: nil)
        }
    }

    /// Announces that the running thread is about to wait: for the one who will wake it.
    func beginWait() -> Waiter {
        running.waits += 1
        running.isRunnable = false
        return Waiter(thread: running, wait: running.waits)
    }

    /// Waits until woken, or until a time.
    /// - Returns: whether it was woken.
    @discardableResult
    func wait(until deadline: Int64?) -> Bool {
        let own = running
        own.isLate = false
        if let deadline { events.insert(max(deadline, now), .wake(Waiter(thread: own, wait: own.waits))) }
        reschedule(own)
        return !own.isLate
    }

    @discardableResult
    func wake(_ waiter: Waiter) -> Bool {
        guard waiter.isWaiting else { return false }
        waiter.thread.isRunnable = true
        runnable.append(waiter.thread)
        return true
    }

    func wakeAll(_ waiters: inout [Waiter]) {
        let all = waiters
        waiters.removeAll(keepingCapacity: true)
        for waiter in all { wake(waiter) }
    }

    /// Lets another thread run, if there is one.
    func yield() {
        runnable.append(running)
        reschedule(running)
    }

    private func reschedule(_ own: WorldThread) {
        guard let next = nextThread(), next !== own else { return }
        turn(to: next)
    }

    private func turn(to next: WorldThread) {
        switches += 1
        running = next
        world_turn(Int32(next.number))
    }

    /// The thread to run next, which the seed picks; time passes until there is one.
    private func nextThread() -> WorldThread? {
        while true {
            while let time = events.earliest, time <= now || runnable.isEmpty {
                guard let event = events.popFirst() else { break }
                switch event {
                case .act(let action):
                    now = max(now, time)
                    action()
                case .wake(let waiter):
                    guard waiter.isWaiting else { continue }
                    now = max(now, time)
                    waiter.thread.isLate = true
                    wake(waiter)
                }
            }
            if runnable.isEmpty {
                guard let driverWait, driverWait.isWaiting else { return nil }
                if failure == nil { failure = "nothing is left that could happen" }
                wake(driverWait)
            }
            let index = runnable.count == 1 ? 0 : random.below(runnable.count)
            let thread = runnable.remove(at: index)
            // Threads of a process that was killed never run again.
            if thread.owner?.isDead != true {
                trace.add(thread.number)
                running = thread
                return thread
            }
        }
    }

    // MARK: System calls

    private func handle(_ number: Int, _ arguments: UnsafePointer<Int>?) -> Int {
        guard let arguments else { return -22 }
        if let result = passed(number, arguments) { return result }
        systemCalls += 1
        if systemCalls > systemCallLimit { fail("more than \(systemCallLimit) system calls") }
        now += 200 + Int64(random.below(1200))
        let result = perform(number, arguments)
        trace.add(number)
        trace.add(result)
        trace.note("\(now) \(running.number) \(process.name) \(number)(\(arguments[0])) = \(result)")
        if random.chance(preemption) { yield() }
        return result
    }

    /// The error that a call of a kind has once.
    func fault(_ kind: Fault) -> Int? { process.faults.removeValue(forKey: kind).map { -Int($0) } }

    /// Kills a process, as SIGKILL would, or when it exits.
    package func kill(_ process: Process, status: Int = 137) {
        guard !process.isDead else { return }
        process.isDead = true
        process.status = status
        descriptors.closeAll(of: process)
        process.ended(process)
    }

    /// Sends a signal that the process waits for.
    package func signal(_ process: Process, _ number: Int) {
        process.pendingSignals.append(number)
        wakeAll(&process.signalWaiters)
    }

    /// Exits the process of the running thread; the thread does not go on.
    func exit(_ status: Int) {
        let own = running
        kill(process, status: status)
        own.isRunnable = false
        while true { if let next = nextThread() { turn(to: next) } }
    }
}

extension Machine: @unchecked Sendable {}

/// A kind of system call that fails where the world wants it.
package enum Fault: Hashable, Sendable { case socket, accept }

/// What happens at a time.
enum Event {
    case act(() -> Void)
    case wake(Waiter)
}

/// Events by time; those of the same time in the order in which they were added.
struct EventHeap {
    private struct Entry {
        let time: Int64
        let order: Int
        let event: Event

        func isBefore(_ other: Entry) -> Bool { time < other.time || (time == other.time && order < other.order) }
    }

    private var entries: [Entry] = []
    private var order = 0

    var earliest: Int64? { entries.first?.time }

    mutating func insert(_ time: Int64, _ event: Event) {
        order += 1
        entries.append(Entry(time: time, order: order, event: event))
        var index = entries.count - 1
        while index > 0, entries[index].isBefore(entries[(index - 1) / 2]) {
            entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Leaves the threads that wait for a time.
    mutating func leaveWaits(earlierBy elapsed: Int64) {
        let all = entries.sorted { $0.isBefore($1) }
        entries = []
        for entry in all { if case .wake = entry.event { insert(entry.time - elapsed, entry.event) } }
    }

    mutating func popFirst() -> Event? {
        guard let first = entries.first else { return nil }
        let last = entries.removeLast()
        guard !entries.isEmpty else { return first.event }
        entries[0] = last
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < entries.count {
                if entries[child].isBefore(entries[least]) { least = child }
            }
            if least == index { return first.event }
            entries.swapAt(index, least)
            index = least
        }
    }
}
