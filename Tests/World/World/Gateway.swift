import CLinux
import MartletCommands
import MartletJSON
import MartletProvider
import MartletServer
import WorldMachine

/// A gateway of the world: `martlet run` in a process of its own, which ends and is started again.
final class Gateway {
    private unowned let simulation: Simulation
    let index: Int
    /// Counts its processes.
    private(set) var incarnation = 0
    private(set) var process: Process
    private var printed: [UInt8] = []
    /// The last lines that it printed for operators.
    private(set) var log: [String] = []
    private(set) var isServing = false
    /// When it last heard that Redis has another master.
    private(set) var masterChangedAt: Int64 = -1
    /// What its process has open after its start.
    private(set) var descriptors: [(kind: String, count: Int)] = [] {
        didSet { mostCounters = max(mostCounters, descriptors.first { $0.kind == "EventCounter" }?.count ?? 0) }
    }
    /// The most event counters that there were at a start.
    private(set) var mostCounters = 0
    /// Whether it is to be started again when it has ended.
    var wantsRestart = false
    /// How often its configuration has changed, and which it uses.
    var variant = 0
    private(set) var usedVariant = 0
    var ended: () -> Void = {}

    init(_ simulation: Simulation, _ index: Int) {
        self.simulation = simulation
        self.index = index
        process = Process(id: index, name: "gateway-\(index)")
    }

    var address: Address { Address(index, 8080) }

    /// Starts its process. On a thread of the machine, outside of the world.
    func start() {
        simulation.incarnations += 1
        simulation.lastStart = simulation.machine.now
        incarnation = simulation.incarnations
        simulation.renewDatabase()
        let own = Process(id: index, name: "gateway-\(index).\(incarnation)")
        own.clockOffset = process.clockOffset
        process = own
        own.printed = { [unowned self] bytes, _ in print(bytes) }
        own.ended = { [unowned self] _ in hasEnded() }
        let (program, machine, path) = (simulation.program, simulation.machine, "/world/gateway-\(index).yaml")
        Process.$current.withValue(own) {
            machine.enter {
                _ = Task {
                    let code = await program.run(["run", path])
                    machine.leave { machine.kill(own, status: Int(code.rawValue)) }
                }
            }
        }
    }

    private func hasEnded() {
        isServing = false
        if process.status == 69, simulation.diskFailed {
            // It cannot open its accounts: whoever looks after it starts it again.
            wantsRestart = true
        } else if process.status != 0, process.status != 137 {
            simulation.ledger.violate(
                .crash, "\(process.name) exited with \(process.status ?? -1): \(log.suffix(3).joined(separator: " / "))"
            )
        }
        ended()
        if wantsRestart {
            wantsRestart = false
            simulation.machine.after(200_000_000) { [self] in
                simulation.starting.append(self)
                simulation.machine.stop()
            }
        }
    }

    private func print(_ bytes: UnsafeRawBufferPointer) {
        printed += bytes
        while let end = printed.firstIndex(of: 10) {
            line(Array(printed[..<end]))
            printed.removeFirst(end + 1)
        }
    }

    private func line(_ bytes: [UInt8]) {
        guard let members = (try? JSON.parse(bytes, limits: JSONLimits(maximumDepth: 8, maximumBytes: 100_000)))?.object
        else {
            log.append(String(decoding: bytes, as: UTF8.self))
            return
        }
        switch members["event"]?.string {
        case "request":
            return simulation.ledger.line(members["path"]?.string ?? "", id: members["request_id"]?.string ?? "")
        case "configuration reloaded": usedVariant = variant
        case "listening" where members["listener"]?.string == "public":
            isServing = true
            let (machine, own) = (simulation.machine, process)
            machine.after(300_000_000) { [self] in
                if own === process { descriptors = machine.descriptors(of: own) }
            }
        case "redis master changed": masterChangedAt = simulation.machine.now
        case "job failed" where members["job"]?.string == "end_sessions":
            simulation.ledger.accounts.endHasFailed(of: members["subject"]?.string ?? "")
        default: break
        }
        log.append(String(decoding: bytes, as: UTF8.self))
    }
}
