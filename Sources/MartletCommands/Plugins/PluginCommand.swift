private import Glibc
internal import MartletConfig
internal import MartletPlugins
internal import MartletProvider
internal import MartletServer

/// `martlet plugin new NAME`: writes the package of a plugin. `martlet plugin probe`, which only the gateway starts, loads
/// a library for a trial.
enum PluginCommand: Command {
    case new(PluginName, api: String?)
    case probe(path: String, report: Int32)

    /// - Throws: `UsageError` unless the words are a verb and its argument.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        let argument = options.words.dropFirst().first ?? ""
        guard options.words.first == "probe" else {
            guard let name = PluginName(argument, kind: options["kind"]) else {
                throw Options.UsageError(
                    message:
                        "the name must be that of a Swift type: letters and digits, beginning with an uppercase letter; "
                        + "the kind has lowercase letters, digits and underscores")
            }
            guard program.registry.factory(for: ProviderKind(rawValue: name.kind)) == nil else {
                throw Options.UsageError(
                    message: "the gateway has a provider of kind \(name.kind), so it would not load another one: "
                        + "choose another name, or --kind KIND")
            }
            self = .new(name, api: options["api"])
            return
        }
        guard let report = options[PluginTrial.option].flatMap({ Int32($0) }), report > 2 else {
            throw Options.UsageError(message: "probe is for the gateway itself")
        }
        self = .probe(path: argument, report: report)
    }

    func run() -> ExitCode {
        switch self {
        case .new(let name, let api): return Self.write(name, api)
        case .probe(let path, let report):
            PluginTrial.run(path: path, report: report)
            return .ok
        }
    }

    private static func write(_ name: PluginName, _ chosen: String?) -> ExitCode {
        guard let api = chosen.flatMap(folder) ?? (chosen == nil ? installed : nil) else {
            Output.error(
                "martlet plugin: the public API is not installed beside this executable (../lib/martlet/api); pass its "
                    + "folder as --api FOLDER\n")
            return .configuration
        }
        var failure: String?
        if unsafe mkdir(name.type, 0o777) != 0 {
            failure = errno == EEXIST ? "it exists" : SystemFile.reason()
        }
        let template = PluginTemplate(name: name, api: api)
        for file in template.files where failure == nil {
            let path = "\(name.type)/\(file.path)"
            makeFolders(of: path)
            failure = SystemFile.create(path, Array(file.text.utf8), mode: 0o666)
        }
        if let failure {
            Output.error("martlet plugin: cannot write the folder \(name.type): \(failure)\n")
            return .configuration
        }
        Output.line(
            """
            \(name.type)/ is a package with a provider of kind \(name.kind). In that folder:
              swift test               runs its tests
              swift build -c release   builds .build/release/lib\(name.type).so, for plugins: in the configuration
            """)
        return .ok
    }

    private static func makeFolders(of path: String) {
        var folder = ""
        for part in path.split(separator: "/").dropLast() {
            folder += folder.isEmpty ? "\(part)" : "/\(part)"
            _ = unsafe mkdir(folder, 0o777)
        }
    }

    /// The public API beside this executable: installed, or in a build folder.
    private static var installed: String? {
        guard let program = unsafe realpath("/proc/self/exe", nil) else { return nil }
        defer { unsafe free(program) }
        let parts = unsafe String(cString: program).split(separator: "/").dropLast()
        let above = "/" + parts.dropLast().joined(separator: "/")
        return folder("\(above)/lib/martlet/api") ?? folder("/" + parts.dropLast(2).joined(separator: "/") + "/api")
    }

    /// The absolute path of a folder with the interface of the plugin API.
    private static func folder(_ path: String) -> String? {
        guard let absolute = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(absolute) }
        let text = unsafe String(cString: absolute)
        return unsafe access("\(text)/modules/MartletProvider.swiftinterface", R_OK) == 0 ? text : nil
    }

    static let grammar = CommandGrammar("plugin", "Write the package of a provider in a shared library") { grammar in
        grammar.subcommands = [
            CommandGrammar("new", "Write a package that builds and passes its tests") { new in
                new.details = """
                    Writes a folder NAME with the package of a provider in a shared library, which builds and passes its tests
                    as it is. An existing folder is not touched.
                    """
                new.arguments = [
                    .one("NAME", .text, "the name of a Swift type, such as Line; the provider's kind is then line")
                ]
                new.options = [
                    .value("kind", "KIND", .text, "the provider's kind; default: the name in snake case"),
                    .value(
                        "api", "FOLDER", .folder, "the public API; default: ../lib/martlet/api beside the executable"),
                ]
            },
            CommandGrammar("probe", "For the gateway itself") { probe in
                probe.isHidden = true
                probe.arguments = [.one("FILE", .file, "the shared library of a plugin")]
                probe.options = [.value(PluginTrial.option, "DESCRIPTOR", .number, "where the report is written to")]
            },
        ]
        grammar.example("martlet plugin new Line", "the folder Line with a provider of kind line")
        grammar.example("martlet plugin new GitHub --kind github", "a kind that is not git_hub")
        grammar.exits = [
            .ok: "written", .configuration: "the folder exists or cannot be written, or there is no API",
        ]
    }
}
