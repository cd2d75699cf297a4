import CWorld
import Glibc
import MartletCommands
import WorldMachine

/// Runs worlds in processes of their own, so that each begins with the same memory, and a crash ends it alone.
final class Runner {
    private let options: Options
    private let copier: Copier
    /// What the worlds report, one slot for each that runs at a time.
    private let reports: [Report]

    /// - Parameter keys: of issuers; they take too long to make for each world.
    init(_ program: Program, _ keys: SigningKeys, _ machine: Machine, _ options: Options) {
        self.options = options
        let reports = (0..<options.jobs).map { _ in Report() }
        self.reports = reports
        copier = Copier { slot in
            guard let job = Options(reports[slot].text.split(separator: " ").map(String.init)),
                case .one(let seed) = job.work
            else { _exit(64) }
            World.run(seed, job.cut, program, keys, machine, traces: job.traces, on: slot, reports[slot])
        }
    }

    // MARK: Work

    /// Runs one world, and shrinks it if it fails.
    func one(_ seed: UInt64) -> Bool {
        let outcome = run([Job(seed: seed, cut: options.cut, traces: options.traces)])[0]
        print(outcome.line)
        guard let invariant = outcome.invariant else { return true }
        print(outcome.details)
        if options.shrinks, !options.traces { shrink(seed, invariant) }
        return false
    }

    /// Runs the same world several times.
    func replay(_ seed: UInt64, times: Int) -> Bool {
        let outcomes = run((0..<times).map { _ in Job(seed: seed, cut: options.cut) })
        let hashes = Set(outcomes.map(\.hash))
        print(
            "seed \(seed): \(outcomes.filter { $0.hash == outcomes[0].hash }.count) of \(times) times hash \(outcomes[0].hash)"
        )
        return hashes.count == 1
    }

    /// Runs many worlds.
    func campaign(_ seeds: Range<UInt64>) -> Bool {
        let began = Self.seconds
        var (failures, total, requests, faults, time) = (0, 0, 0, 0, 0)
        run(seeds.lazy.map { [options] in Job(seed: $0, cut: options.cut) }) { [options] outcome in
            total += 1
            requests += outcome.requests
            faults += outcome.faults
            time += outcome.seconds
            guard outcome.invariant != nil else { return true }
            failures += 1
            print(outcome.line)
            print(outcome.details)
            fflush(nil)
            return options.keepsGoing
        }
        let took = max(Self.seconds - began, 0.001)
        print(
            "world: \(total) seeds, \(failures) violations, \(requests) requests, \(faults) faults, \(time / 3600) simulated hours, "
                + "\(Int(took)) s, \(Int(Double(total) / took)) seeds/s")
        return failures == 0 && total == seeds.count
    }

    private static var seconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    // MARK: Shrinking

    /// Leaves out faults, clients and requests for as long as the same guarantee is broken.
    private func shrink(_ seed: UInt64, _ invariant: String) {
        var plan = Plan(seed: seed)
        options.cut.apply(to: &plan)
        var cut = options.cut
        cut.faults = cut.faults ?? Array(plan.faults.indices)
        cut.clients = cut.clients ?? Dictionary(uniqueKeysWithValues: plan.clients.enumerated().map { ($0, $1) })
        func fails(_ cuts: [Cut]) -> Cut? {
            let outcomes = run(cuts.map { Job(seed: seed, cut: $0) })
            return zip(cuts, outcomes).first { $1.invariant == invariant }?.0
        }
        var size = max(cut.faults?.count ?? 0, 1)
        while size >= 1 {
            let faults = cut.faults ?? []
            let smaller = stride(from: 0, to: faults.count, by: size).map { start in
                var next = cut
                next.faults = Array(faults[..<start] + faults[min(start + size, faults.count)...])
                return next
            }
            if let found = fails(smaller) { cut = found } else { size /= 2 }
        }
        var hasShrunk = true
        while hasShrunk {
            hasShrunk = false
            let clients = (cut.clients ?? [:]).filter { $0.value > 0 }.sorted { $0.key < $1.key }
            let smaller = clients.flatMap { index, requests in
                [0, requests / 2, requests - 1].filter { $0 < requests }.map { left in
                    var next = cut
                    next.clients?[index] = left
                    return next
                }
            }
            if let found = fails(smaller) {
                cut = found
                hasShrunk = true
            }
        }
        let last = run([Job(seed: seed, cut: cut)])[0]
        print("shrunk: world \(seed) \(cut.text)")
        print(last.line)
    }

    // MARK: Processes

    private struct Job {
        let seed: UInt64
        let cut: Cut
        var traces = false
    }

    private func run(_ jobs: [Job]) -> [Outcome] {
        var all: [Outcome] = []
        run(jobs) { outcome in
            all.append(outcome)
            return true
        }
        return all.sorted { $0.order < $1.order }
    }

    /// Runs jobs, as many at a time as there are slots.
    /// - Parameter handle: gets each outcome, and says whether to go on.
    private func run(_ jobs: some Sequence<Job>, _ handle: (Outcome) -> Bool) {
        var iterator = jobs.makeIterator()
        var running: [pid_t: (slot: Int, job: Job, order: Int)] = [:]
        var free = Array(reports.indices)
        var (order, goesOn) = (0, true)
        while true {
            while goesOn, let slot = free.last, let job = iterator.next() {
                free.removeLast()
                reports[slot].write("\(job.seed) \(job.cut.text)\(job.traces ? " --trace" : "")")
                fflush(nil)
                let child = copier.copy(for: slot)
                running[child] = (slot, job, order)
                order += 1
            }
            if running.isEmpty { return }
            var status: Int32 = 0
            let child = waitpid(-1, &status, 0)
            guard let ended = running.removeValue(forKey: child) else { continue }
            free.append(ended.slot)
            World.clean(child)
            if !handle(Outcome(ended.job.seed, ended.order, reports[ended.slot].text, status)) { goesOn = false }
        }
    }
}

/// A process that makes copies of itself, in each of which a world begins with the same memory.
private struct Copier {
    private let requests: Int32
    private let replies: Int32

    /// - Parameter run: what each copy does.
    init(_ run: (_ slot: Int) -> Never) {
        var (asked, made): ([Int32], [Int32]) = ([0, 0], [0, 0])
        precondition(pipe(&asked) == 0 && pipe(&made) == 0, "no pipes")
        fflush(nil)
        if world_fork() == 0 {
            close(asked[1])
            close(made[0])
            run(Int(world_copies(asked[0], made[1])))
        }
        close(asked[0])
        close(made[1])
        (requests, replies) = (asked[1], made[0])
    }

    func copy(for slot: Int) -> pid_t {
        var (slot, child) = (Int32(slot), pid_t(0))
        guard write(requests, &slot, 4) == 4, read(replies, &child, 4) == 4, child > 0 else {
            print("world: no more processes")
            fflush(nil)
            _exit(1)
        }
        return child
    }
}

/// Memory that a world writes its report to.
struct Report {
    private static let size = 65_536
    private let memory: UnsafeMutableRawPointer

    init() {
        let memory = mmap(nil, Report.size, PROT_READ | PROT_WRITE, MAP_SHARED | Int32(MAP_ANONYMOUS), -1, 0)
        precondition(memory != nil && memory != MAP_FAILED, "no memory for reports")
        self.memory = memory!
    }

    func write(_ text: String) {
        let bytes = Array(text.utf8.prefix(Report.size - 8))
        (memory + 8).copyMemory(from: bytes, byteCount: bytes.count)
        memory.storeBytes(of: bytes.count, as: Int.self)
    }

    var text: String {
        let count = memory.load(as: Int.self)
        return String(decoding: UnsafeRawBufferPointer(start: memory + 8, count: count), as: UTF8.self)
    }
}

/// What became of a world.
struct Outcome {
    let seed: UInt64
    let order: Int
    /// The guarantee that was broken.
    let invariant: String?
    let what: String
    let hash: String
    let requests: Int
    let faults: Int
    let seconds: Int
    /// More about a failure.
    let details: String

    /// - Parameters:
    ///   - report: lines: the hash, numbers, the invariant, what broke it, and details.
    ///   - status: of the world's process.
    init(_ seed: UInt64, _ order: Int, _ report: String, _ status: Int32) {
        self.seed = seed
        self.order = order
        let lines = report.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.count >= 4 else {
            (invariant, hash, requests, faults, seconds, details) = ("crash", "-", 0, 0, 0, report)
            what =
                status & 0x7f == SIGALRM ? "the world stands still" : "the world was killed by signal \(status & 0x7f)"
            return
        }
        hash = lines[0]
        let numbers = lines[1].split(separator: " ").compactMap { Int($0) }
        (requests, faults, seconds) = (numbers[0], numbers[1], numbers[2])
        invariant = lines[2].isEmpty ? nil : lines[2]
        what = lines[3]
        details = lines.dropFirst(4).joined(separator: "\n")
    }

    var line: String {
        let outcome = invariant.map { "\($0): \(what)" } ?? "fine"
        return "seed \(seed) \(outcome) hash \(hash) requests \(requests) faults \(faults) seconds \(seconds)"
    }
}
