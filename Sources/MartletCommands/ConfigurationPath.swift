private import CLinux
internal import MartletConfig
internal import MartletProvider
internal import MartletServer

/// Which configuration a command reads: `--config`, else the environment, else the usual files.
enum ConfigurationPath {
    static let variable = "MARTLET_CONFIG"
    /// The file in the working directory.
    static let local = "config.yaml"
    /// The file of an installed gateway.
    static let system = "/etc/martlet/config.yaml"

    /// The path of the configuration; `-` is standard input.
    static func of(_ options: Options) -> String {
        choose(options["config"], environment: SystemInformation.environment, exists: exists)
    }

    /// The argument of commands that take the configuration as one, too.
    static let argument = CommandArgument.optional("FILE", .file, "the configuration, as for --config")

    /// Whether it is chosen by an option or the environment, and not where it happens to be.
    static func isNamed(_ options: Options) -> Bool {
        options["config"] != nil || SystemInformation.environment(variable).map { !$0.isEmpty } ?? false
    }

    /// The path of the configuration for a command that takes it as an argument, too.
    /// - Throws: `UsageError` if it is given both ways.
    static func ofArgument(_ options: Options) throws(Options.UsageError) -> String {
        guard let file = options.words.first else { return of(options) }
        guard options["config"] == nil else {
            throw Options.UsageError(message: "FILE cannot be combined with --config")
        }
        return file
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
            let text = try text(path)
            return Blueprint.read(
                text: String(decoding: text, as: UTF8.self), name: standardInput, registry: registry,
                environment: environment)
        } catch {
            return (nil, unreadable(error.message, in: standardInput))
        }
    }

    /// The admin listener of a configuration, for a command that needs nothing else of it.
    ///
    /// Where other blocks have errors, `admin:` alone is decoded: the gateway that runs has an older configuration, and an
    /// operator who looks at it has to reach it now.
    /// - Returns: the block, `nil` with `off` and after errors of its own; the diagnostics that concern it; and how many
    ///   errors others have.
    static func admin(
        _ path: String, _ registry: ProviderRegistry
    ) -> (admin: AdminConfiguration?, diagnostics: Diagnostics, otherErrors: Int) {
        let environment = SystemInformation.environment
        let name = path == "-" ? standardInput : path
        let text: [UInt8]
        do throws(ArgumentFileError) {
            text = try self.text(path)
        } catch {
            return (nil, unreadable(path == "-" ? error.message : "\(error.message)\(hint)", in: name), 0)
        }
        let (whole, diagnostics) = GatewayConfiguration.decode(
            text: text, file: name, environment: environment, knownKinds: registry.kinds.map(\.rawValue))
        if let whole { return (whole.admin, Diagnostics(), 0) }
        let (admin, own) = GatewayConfiguration.decodeAdmin(text: text, file: name, environment: environment)
        return (admin, own, diagnostics.errors.count - own.errors.count)
    }

    /// A command may look for the admin listener first: standard input is there only once.
    private static let standardInputText = Result { () throws(ArgumentFileError) in
        try ArgumentFile.readWhole("-", "the configuration", limit: limit)
    }

    private static func text(_ path: String) throws(ArgumentFileError) -> [UInt8] {
        try path == "-" ? standardInputText.get() : ArgumentFile.readWhole(path, "the configuration", limit: limit)
    }

    private static let hint = "; pass its path with --config FILE, or create one with 'martlet init'"

    static let limit = 16 << 20

    private static func unreadable(_ message: String, in name: String) -> Diagnostics {
        var diagnostics = Diagnostics()
        diagnostics.error(
            .configFileUnreadable, at: SourceLocation(file: name, line: 1, column: 1), message)
        return diagnostics
    }
}
