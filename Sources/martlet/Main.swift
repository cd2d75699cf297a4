private import BundledProviders
private import MartletProvider
private import MartletServer

/// The executable: the bundled providers, and the command that the arguments ask for.
@main
enum Main {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        Signals.dieQuietly()
        Signals.block(steering: Program.serves(arguments))
        let inheritance = Program.inherits(arguments) ? Inheritance.take() : Inheritance()
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        let program = Program(registry, inheritance)
        let completion = Completion()
        let work = Task.detached { completion.finish(await program.run(arguments)) }
        let code = completion.wait()
        work.cancel()
        ProcessEnd.leave(code.rawValue)
    }
}
