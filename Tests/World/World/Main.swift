import BundledProviders
import CLinux
import CWorld
import MartletCommands
import MartletCore
import MartletProvider
import MartletServer
import WorldMachine

@main
enum Main {
    static func main() {
        _ = world_pin(CommandLine.unsafeArgv)
        let arguments = CommandLine.arguments.dropFirst()
        let reads = arguments.contains("--trace")
        let numbers = arguments.compactMap { UInt64($0) }
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        let program = Program(registry)
        let first = numbers.first ?? 1
        var failures = 0
        for seed in first..<first + (numbers.count > 1 ? numbers[1] : 1) {
            fflush(nil)
            let child = fork()
            if child == 0 { run(seed, program, reads: reads) }
            var status: Int32 = 0
            waitpid(child, &status, 0)
            if status != 0 {
                failures += 1
                if status & 0x7f != 0 { print("seed \(seed): killed by signal \(status & 0x7f)") }
            }
        }
        print("\(failures) failed")
        fflush(nil)
        _exit(failures == 0 ? 0 : 1)
    }

    static func run(_ seed: UInt64, _ program: Program, reads: Bool) -> Never {
        // A world that stands still ends by a signal.
        alarm(60)
        let folder = "/dev/shm/martlet-world-\(getpid())"
        mkdir(folder, 0o700)
        let simulation = Simulation(Plan(seed: seed), program, folder: folder)
        if reads { simulation.machine.trace.print = { print($0) } }
        let violation = simulation.run()
        let machine = simulation.machine
        let responses = simulation.ledger.responses.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)" }.joined(
            separator: " ")
        print(
            "seed \(seed) \(violation.map { "\($0.invariant.rawValue): \($0.what)" } ?? "fine") hash \(String(machine.trace.hash, radix: 16)) "
                + "requests \(simulation.ledger.exchanges.count) [\(responses)] calls \(machine.systemCalls) switches \(machine.switches) s \(machine.now / 1_000_000_000)"
        )
        if violation != nil {
            for gateway in simulation.gateways {
                for line in gateway.log.suffix(6) { print("  \(gateway.index): \(line)") }
            }
        }
        fflush(nil)
        for name in ["users", "gateway-1.yaml", "gateway-2.yaml", "gateway-3.yaml"] { unlink(folder + "/" + name) }
        rmdir(folder)
        _exit(violation == nil ? 0 : 1)
    }
}
