private import Glibc
internal import MartletConfig
internal import MartletPlugins
internal import MartletServer

/// `martlet plugin new NAME`: writes the package of a plugin. `martlet plugin probe`, which only the gateway starts, loads
/// a library for a trial.
enum PluginCommand {
    case new(PluginName, api: String?)
    case probe(path: String, report: Int32)

    /// - Throws: `UsageError` unless the words are a verb and its argument.
    init(_ options: Options) throws(Options.UsageError) {
        guard options.words.count == 2 else { throw Options.UsageError(message: "expected new and a name") }
        switch options.words[0] {
        case "new":
            guard let name = PluginName(options.words[1]) else {
                throw Options.UsageError(
                    message:
                        "the name must be that of a Swift type: letters and digits, beginning with an uppercase letter")
            }
            self = .new(name, api: options["api"])
        case "probe":
            guard let report = options[PluginTrial.option].flatMap({ Int32($0) }), report > 2 else {
                throw Options.UsageError(message: "probe is for the gateway itself")
            }
            self = .probe(path: options.words[1], report: report)
        default: throw Options.UsageError(message: "expected new")
        }
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
            failure = errno == EEXIST ? "it exists" : unsafe String(cString: strerror(errno))
        }
        let template = PluginTemplate(name: name, api: api)
        for file in template.files where failure == nil {
            let path = "\(name.type)/\(file.path)"
            makeFolders(of: path)
            failure = NewFile.write(Array(file.text.utf8), to: path, mode: 0o666)
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
}
