import Foundation
import MartletTesting

/// Shared libraries for the gateway, built outside of the package with the collected public API alone.
enum PluginStage {
    /// The root of the repository.
    static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
        .standardizedFileURL.path

    /// The public API of this build, collected once.
    static let api = Result {
        let folder = try TemporaryFolder()
        let build = URL(filePath: try Executable.martlet()).deletingLastPathComponent().path
        try command([root + "/.tools/api", folder.path + "/api", build])
        return folder
    }

    /// The path of the public API.
    static func apiFolder() throws -> String { try api.get().path + "/api" }

    /// Runs a command that has to succeed.
    @discardableResult
    static func command(
        _ words: [String], in folder: String = "/", within limit: Duration = .seconds(300)
    ) throws
        -> CommandResult
    {
        let result = try MartletTesting.run(
            "/usr/bin/env", ["-C", folder] + words, environment: ProcessInfo.processInfo.environment, within: limit)
        guard result.ending == .exited(0) else { throw TestFailure("\(words): \(result)") }
        return result
    }

    /// What a C file needs to be a plugin by its looks: it registers nothing.
    static let entry = """
        #include "martlet_plugin.h"
        static void add(const struct martlet_plugin_info *info, void *registry) { (void)info; (void)registry; }
        static const struct martlet_plugin_info facts = {
            sizeof facts, MARTLET_API_MAJOR, MARTLET_API_MINOR, MARTLET_COMPILER, MARTLET_API_STAMP, add };
        const struct martlet_plugin_info *martlet_plugin(void) { return &facts; }

        """

    /// Compiles a library with the toolchain's C compiler, and puts it into a folder.
    static func compile(_ source: String, _ options: [String] = [], to name: String, in folder: TemporaryFolder) throws
    {
        let file = try folder.write(source, to: "\(name).c")
        try command(
            [
                "clang", "-shared", "-fPIC", "-I", try apiFolder() + "/modules/CMartletPlugin", "-o", folder.file(name),
                file,
            ]
                + options)
        try command(["chmod", "755", folder.file(name)])
    }

    /// Writes the package of `martlet plugin new`, builds it, and puts its library into a folder.
    /// - Parameters:
    ///   - testing: whether to run its tests, too.
    ///   - source: the folder with a provider's sources, instead of the template's.
    ///   - kind: the provider's kind, instead of that of the template, which the gateway does not have.
    static func build(
        _ name: String, into folder: TemporaryFolder, testing: Bool = false, source: String? = nil,
        kind: String? = nil
    ) throws -> String {
        let parent = try TemporaryFolder()
        try command([try Executable.martlet(), "plugin", "new", name, "--api", try apiFolder()], in: parent.path)
        let package = parent.file(name)
        if let source { try command(["cp", "-r", source + "/.", "\(package)/Sources/\(name)"]) }
        if let kind {
            let change = #"s/kind: ProviderKind = "[a-z_]*"/kind: ProviderKind = "\#(kind)"/"#
            try command(["sed", "-i", change, "\(package)/Sources/\(name)/\(name)Provider.swift"])
        }
        if testing { try command(["swift", "test"], in: package) }
        try command(["swift", "build", "--product", name], in: package)
        try command(["cp", "\(package)/.build/debug/lib\(name).so", folder.path])
        try command(["chmod", "755", folder.file("lib\(name).so")])
        return "lib\(name).so"
    }
}
