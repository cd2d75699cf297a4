internal import BundledProviders
internal import MartletProvider
internal import MartletServer

internal import Glibc

/// The executable: bundled providers, and the command that the arguments ask for.
@main
enum Main {
    static func main() async {
        Signals.block()
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        let code = await Program(registry).run(Array(CommandLine.arguments.dropFirst()))
        exit(code.rawValue)
    }
}
