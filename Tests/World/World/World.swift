import CWorld
import Glibc
import MartletCommands
import WorldMachine

/// A world in a process of its own.
enum World {
    /// Longer than any world that makes progress takes, in seconds.
    private static let limit: UInt32 = 120

    static func run(
        _ seed: UInt64, _ cut: Cut, _ program: Program, _ keys: SigningKeys, traces: Bool, on slot: Int,
        _ report: Report
    ) -> Never {
        alarm(limit)
        // Its threads run one at a time: on one processor they hand over fastest.
        world_use_processor(Int32(slot))
        let folder = folder(getpid())
        mkdir(folder, 0o700)
        var plan = Plan(seed: seed)
        cut.apply(to: &plan)
        let simulation = Simulation(plan, program, keys, folder: folder)
        let machine = simulation.machine
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
