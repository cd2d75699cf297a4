import Foundation

/// Finds programs.
package enum Executable {
    /// The gateway as it was just built: it stands beside the test bundle, unless `MARTLET_EXECUTABLE` names another one.
    package static func martlet() throws -> String {
        if let path = ProcessInfo.processInfo.environment["MARTLET_EXECUTABLE"] { return path }
        let bundles = [(try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""]
        for bundle in bundles + CommandLine.arguments {
            let folder = URL(fileURLWithPath: bundle).deletingLastPathComponent()
            let candidate = folder.appendingPathComponent("martlet").path
            if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
        }
        throw TestFailure("no martlet executable beside the test bundle; build it or set MARTLET_EXECUTABLE")
    }

    /// A program of the system, looked for where daemons stand too.
    package static func named(_ name: String) throws -> String {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        for folder in path.split(separator: ":").map(String.init) + ["/usr/bin", "/usr/sbin", "/usr/local/bin"] {
            let candidate = folder + "/" + name
            if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
        }
        throw TestFailure("\(name) is not installed")
    }
}
