import CWorld
import Glibc
import MartletCommands
import MartletCore
import WorldMachine

/// A world in a process of its own.
enum World {
    /// Longer than any world that makes progress takes, in seconds.
    private static let limit: UInt32 = 120

    /// Runs a short world before all others, so that each of them finds what a program makes once, such as the metadata
    /// of types, which takes longer than many requests.
    /// - Returns: the machine of all worlds; `nil` if the system has none of what it needs.
    static func prepare(_ program: Program, _ keys: SigningKeys) -> Machine? {
        let machine = Machine()
        guard machine.start() else { return nil }
        machine.enter { try? TaskThreads.install() }
        let folder = folder(getpid())
        mkdir(folder, 0o700)
        var plan = Plan(seed: 1)
        plan.shorten(until: 10_000_000_000)
        let simulation = Simulation(plan, program, keys, machine, folder: folder)
        former = simulation
        if let violation = simulation.run() {
            print("world: the first world of all fails: \(violation.invariant.rawValue): \(violation.what)")
            return nil
        }
        clean(getpid())
        return machine
    }

    /// Threads that have not ended may know what belongs to it.
    private nonisolated(unsafe) static var former: Simulation?

    static func run(
        _ seed: UInt64, _ cut: Cut, _ program: Program, _ keys: SigningKeys, _ machine: Machine, traces: Bool,
        on slot: Int, _ report: Report
    ) -> Never {
        alarm(limit)
        report.write("")
        // Its threads run one at a time: on one processor they hand over fastest.
        world_use_processor(Int32(slot))
        let folder = folder(getpid())
        mkdir(folder, 0o700)
        var plan = Plan(seed: seed)
        cut.apply(to: &plan)
        let simulation = Simulation(plan, program, keys, machine, folder: folder)
        if traces { machine.trace.print = { print($0) } }
        let violation = simulation.run()
        var lines = [
            String(machine.trace.hash, radix: 16),
            "\(simulation.ledger.exchanges.count) \(plan.faults.count) \(machine.now / 1_000_000_000)",
            violation?.invariant.rawValue ?? "",
            violation?.what.split(separator: "\n").joined(separator: " ") ?? "",
        ]
        if violation != nil { lines += simulation.details }
        report.write(lines.joined(separator: "\n"))
        fflush(nil)
        world_write_profile()
        _exit(violation == nil ? 0 : 1)
    }

    /// Removes the files of a world.
    static func clean(_ process: pid_t) {
        let folder = folder(process)
        guard let entries = opendir(folder) else { return }
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { unlink(folder + "/" + name) }
        }
        closedir(entries)
        rmdir(folder)
    }

    private static func folder(_ process: pid_t) -> String { "/dev/shm/martlet-world-\(process)" }
}
