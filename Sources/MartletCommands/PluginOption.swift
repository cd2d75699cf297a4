internal import MartletConfig
internal import MartletCore
internal import MartletProvider

/// `--plugin FILE`, which may be repeated: shared libraries whose providers a command knows besides the bundled ones.
struct PluginOption {
    /// Why a library cannot be used.
    struct Failure: Error {
        let message: String
    }

    let paths: [String]

    init(_ options: Options) { paths = options.all("plugin") }

    /// A registry with the providers of the libraries, too; prints warnings.
    /// - Parameter command: named before them.
    func registry(addingTo bundled: ProviderRegistry, for command: String) throws(Failure) -> ProviderRegistry {
        var registry = bundled
        var diagnostics = Diagnostics()
        let location = SourceLocation(file: "--plugin", line: 1, column: 1)
        registry.loadLibraries?(paths.map { Located(FilePath($0), at: location) }, &registry, &diagnostics)
        for warning in diagnostics.warnings { Output.error("martlet \(command): warning: \(Self.line(warning))\n") }
        if let error = diagnostics.errors.first { throw Failure(message: Self.line(error)) }
        return registry
    }

    private static func line(_ diagnostic: Diagnostic) -> String { "\(diagnostic.text) [\(diagnostic.code)]" }
}
