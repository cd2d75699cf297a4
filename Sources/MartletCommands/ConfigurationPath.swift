private import CLinux
internal import MartletConfig
internal import MartletProvider
internal import MartletServer

/// Which configuration a command reads: `--config`, else the environment, else the usual files.
enum ConfigurationPath {
    /// The environment variable that names the configuration.
    static let variable = "MARTLET_CONFIG"
    /// The file in the working directory.
    static let local = "config.yaml"
    /// The file of an installed gateway.
    static let system = "/etc/martlet/config.yaml"

    /// The path of the configuration; `-` is standard input.
    static func of(_ options: Options) -> String {
        choose(options["config"], environment: SystemInformation.environment, exists: exists)
    }

    /// The file of the system is used only where the working directory has none; without both, errors name the local one.
    static func choose(
        _ option: String?, environment: (String) -> String?, exists: (String) -> Bool
    ) -> String {
        if let option { return option }
        if let named = environment(variable), !named.isEmpty { return named }
        return !exists(local) && exists(system) ? system : local
    }

    private static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }
}

/// The text of a configuration: a file, or standard input.
enum ConfigurationText {
    /// How standard input is named in positions; relative paths in it are those of the working directory.
    static let standardInput = "<stdin>"

    /// Reads and checks a configuration; see ``Blueprint/read(_:registry:environment:tickets:)``.
    static func blueprint(_ path: String, _ registry: ProviderRegistry) -> (Blueprint?, Diagnostics) {
        let environment = SystemInformation.environment
        guard path == "-" else { return Blueprint.read(path, registry: registry, environment: environment) }
        do throws(ArgumentFileError) {
            let text = try ArgumentFile.readWhole(path, "the configuration", limit: limit)
            return Blueprint.read(
                text: String(decoding: text, as: UTF8.self), name: standardInput, registry: registry,
                environment: environment)
        } catch {
            return (nil, unreadable(error.message))
        }
    }

    /// Reads a configuration without the parts that providers decode.
    static func configuration(
        _ path: String, _ registry: ProviderRegistry
    ) -> (configuration: GatewayConfiguration?, diagnostics: Diagnostics) {
        let environment = SystemInformation.environment
        let kinds = registry.kinds.map(\.rawValue)
        guard path == "-" else {
            return GatewayConfiguration.load(path: path, environment: environment, knownKinds: kinds)
        }
        do throws(ArgumentFileError) {
            return GatewayConfiguration.decode(
                text: try ArgumentFile.readWhole(path, "the configuration", limit: limit), file: standardInput,
                environment: environment, knownKinds: kinds)
        } catch {
            return (nil, unreadable(error.message))
        }
    }

    static let limit = 1 << 20

    private static func unreadable(_ message: String) -> Diagnostics {
        var diagnostics = Diagnostics()
        diagnostics.error(
            .configFileUnreadable, at: SourceLocation(file: standardInput, line: 1, column: 1), message)
        return diagnostics
    }
}
