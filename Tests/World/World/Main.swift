import BundledProviders
import CLinux
import CWorld
import MartletCommands
import MartletProvider
import MartletServer

/// Runs worlds: `world SEED [COUNT] [options]`, see ``Options/usage``.
@main
enum Main {
    static func main() {
        guard world_pin(CommandLine.unsafeArgv) == 0 else {
            print("world: addresses cannot be kept from being random here; worlds may not repeat")
            return leave(1)
        }
        guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
            print(Options.usage)
            return leave(64)
        }
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        let (program, keys) = (Program(registry), SigningKeys())
        guard let machine = World.prepare(program, keys) else {
            print("world: this system has no Syscall User Dispatch, or its first world fails")
            return leave(1)
        }
        let runner = Runner(program, keys, machine, options)
        switch options.work {
        case .one(let seed): leave(runner.one(seed) ? 0 : 1)
        case .several(let seeds): leave(runner.campaign(seeds) ? 0 : 1)
        case .replay(let seed, let times): leave(runner.replay(seed, times: times) ? 0 : 1)
        }
    }

    /// Exits without the handlers of libraries, whose state the worlds have not used.
    private static func leave(_ status: Int32) {
        fflush(nil)
        _exit(status)
    }
}
