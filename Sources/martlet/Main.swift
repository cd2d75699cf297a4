private import BundledProviders
private import MartletCommands
private import MartletCore
private import MartletProvider
private import MartletServer

/// The executable: registers the bundled providers and runs the command of the arguments.
@main
enum Main {
    static func main() {
        StandardDescriptors.open()
        let arguments = Array(SystemInformation.arguments.dropFirst())
        Signals.disableBacktraces()
        Signals.block(controlSignals: Program.serves(arguments))
        let inherited = Program.inherits(arguments) ? InheritedSockets.collect() : InheritedSockets()
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        precondition(registry.conflicts.isEmpty, "a provider kind is compiled in twice")
        let program = Program(registry, inherited)
        do throws(SystemThreadError) {
            try TaskThreads.install()
        } catch {
            ProcessExit.fail("cannot start the threads of tasks: \(error.message)", .unavailable)
        }
        let completion: Completion
        do {
            completion = try Completion()
        } catch {
            ProcessExit.fail("cannot wait for the command: \(error)", .unavailable)
        }
        let work = Task.detached { completion.finish(await program.run(arguments)) }
        let code = completion.wait()
        work.cancel()
        ProcessExit.exit(code.rawValue)
    }
}
