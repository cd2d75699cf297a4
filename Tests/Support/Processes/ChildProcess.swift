import Foundation
internal import Glibc

/// A child process whose output goes to files; killed with its owner at the latest.
package final class ChildProcess: Sendable {
    /// How a process ended.
    package enum Ending: Sendable, Equatable {
        case exited(Int32)
        case signalled(Int32)
    }

    package let identifier: Int32
    package let outputPath: String
    package let errorPath: String
    private let ending = Box<Ending?>(nil)

    /// Starts a program.
    /// - Parameters:
    ///   - program: an absolute path.
    ///   - folder: where the files with the output go.
    ///   - name: what those files are called.
    ///   - input: what the program reads on its standard input.
    package init(
        _ program: String, _ arguments: [String] = [], environment: [String: String] = [:],
        output folder: TemporaryFolder,
        name: String = "child", input: String = ""
    ) throws {
        outputPath = folder.file("\(name).out")
        errorPath = folder.file("\(name).err")
        let inputPath = try folder.write(input, to: "\(name).in")
        // An empty value is that of a variable which the program is not to have.
        let merged = ProcessInfo.processInfo.environment.merging(environment) { $1 }.filter { !$1.isEmpty }
        identifier = try spawn(
            program, arguments, merged.map { "\($0)=\($1)" }, files: [inputPath, outputPath, errorPath])
    }

    deinit {
        if ending.value == nil {
            kill(SIGKILL)
            _ = waitpid(identifier, nil, 0)
        }
    }

    package var output: String { read(outputPath) }
    package var errorOutput: String { read(errorPath) }

    /// Sends a signal, unless the process is over.
    package func kill(_ signal: Int32) {
        ending.withLock { if $0 == nil { _ = Glibc.kill(identifier, signal) } }
    }

    /// How the process ended; `nil` while it runs.
    package func poll() -> Ending? {
        ending.withLock { known in
            if known != nil { return known }
            var status: Int32 = 0
            guard unsafe waitpid(identifier, &status, WNOHANG) == identifier else { return nil }
            known = status & 0x7F == 0 ? .exited(status >> 8 & 0xFF) : .signalled(status & 0x7F)
            return known
        }
    }

    /// Blocks until the process has ended.
    package func wait(within limit: Duration = .seconds(15)) throws -> Ending {
        try waitUntil("process \(identifier) ends", within: limit) { poll() != nil }
        guard let ending = poll() else { throw TestFailure("no ending") }
        return ending
    }

    private func read(_ path: String) -> String {
        guard let data = FileManager.default.contents(atPath: path) else { return "" }
        return String(decoding: data, as: UTF8.self)
    }
}

/// What a command printed and how it ended.
package struct CommandResult: Sendable, CustomStringConvertible {
    package let ending: ChildProcess.Ending
    package let output: String
    package let errorOutput: String

    package var description: String { "\(ending)\n\(output)\n\(errorOutput)" }
}

/// Runs a program to its end.
package func run(
    _ program: String, _ arguments: [String], environment: [String: String] = [:], input: String = "",
    within limit: Duration = .seconds(30)
) throws -> CommandResult {
    let folder = try TemporaryFolder()
    let child = try ChildProcess(program, arguments, environment: environment, output: folder, input: input)
    let ending = try child.wait(within: limit)
    return CommandResult(ending: ending, output: child.output, errorOutput: child.errorOutput)
}

private func spawn(
    _ program: String, _ arguments: [String], _ environment: [String], files: [String]
) throws -> Int32 {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, files[0], O_RDONLY, 0)
    for descriptor in [1, 2] {
        let flags = O_WRONLY | O_CREAT | O_APPEND
        unsafe posix_spawn_file_actions_addopen(&actions, Int32(descriptor), files[descriptor], flags, 0o600)
    }
    var identifier: pid_t = 0
    let result = unsafe withCStrings([program] + arguments) { arguments in
        unsafe withCStrings(environment) { environment in
            unsafe posix_spawn(&identifier, program, &actions, nil, arguments, environment)
        }
    }
    guard result == 0 else { throw TestFailure("cannot start \(program): \(unsafe String(cString: strerror(result)))") }
    return identifier
}

private func withCStrings<Result>(
    _ texts: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    let pointers = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: texts.count + 1)
    for (index, text) in texts.enumerated() { unsafe pointers[index] = unsafe strdup(text) }
    unsafe pointers[texts.count] = nil
    defer {
        for index in texts.indices { unsafe free(pointers[index]) }
        unsafe pointers.deallocate()
    }
    return unsafe body(pointers)
}
