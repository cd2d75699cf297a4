import Foundation
import MartletTesting

/// Shared libraries that tests compile with the C compiler.
enum CompiledLibrary {
    /// The bytes of a library of one source file.
    static func bytes(_ source: String, _ options: String...) throws -> [UInt8] {
        let folder = try TemporaryFolder()
        let path = try file(source, in: folder, options)
        return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    /// Compiles a library into a folder; returns its path.
    static func file(
        _ source: String, in folder: TemporaryFolder, name: String = "lib.so", _ options: [String]
    ) throws
        -> String
    {
        let input = try folder.write(source, to: "\(name).c")
        let output = "\(folder.path)/\(name)"
        let compiler = Process()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/gcc")
        compiler.arguments = ["-shared", "-fPIC", "-o", output, input] + options
        try compiler.run()
        compiler.waitUntilExit()
        guard compiler.terminationStatus == 0 else { throw TestFailure("the C compiler failed") }
        return output
    }
}
