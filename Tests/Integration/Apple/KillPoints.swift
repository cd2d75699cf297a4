import Foundation
import MartletTesting

/// Kills a gateway between two steps: before its n-th commit or send, by the library in `Tests/Crash`.
struct KillPoints {
    /// The size of `struct kill_points`.
    private static let size = 2 * MemoryLayout<Int32>.size + 4000
    private let path: String
    private let library: String

    init(in folder: TemporaryFolder) throws {
        path = folder.file("kill-points")
        library = folder.file("kill-points.so")
        try Data(count: Self.size).write(to: URL(fileURLWithPath: path))
        let source = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Crash/kill_points.c").standardizedFileURL.path
        let compiled = try run(
            try Executable.named("gcc"), ["-shared", "-fPIC", "-O1", "-Wall", "-o", library, source, "-ldl"])
        guard compiled.ending == .exited(0) else { throw TestFailure("\(compiled)") }
    }

    /// The environment of a gateway that can be killed.
    var environment: [String: String] { ["LD_PRELOAD": library, "MARTLET_KILL_POINTS": path] }

    /// Counts from here on, and kills before call number `target`.
    func arm(_ target: Int) throws {
        // The target last: nothing is counted before.
        try write([Int32](repeating: 0, count: 2))
        try write([Int32(clamping: target)])
    }

    /// Kills nothing any more.
    /// - Returns: the calls that were counted: `f` for a commit, `s` and `w` for what was sent.
    func disarm() throws -> String {
        try write([0])
        let content = try Data(contentsOf: URL(fileURLWithPath: path))
        let count = content[4..<8].enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
        return String(decoding: content[8..<8 + min(count, 4000)], as: UTF8.self)
    }

    private func write(_ numbers: [Int32]) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        defer { try? file.close() }
        try file.write(contentsOf: unsafe numbers.withUnsafeBytes { unsafe Data($0) })
    }
}
