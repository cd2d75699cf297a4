private import Glibc
internal import MartletServer

/// `martlet init`: writes a starter configuration; never overwrites a file.
struct InitCommand {
    private let path: String

    init(_ options: Options) { path = options["config"] ?? "config.yaml" }

    func run() -> ExitCode {
        let name = TerminalText.escaped(path)
        if let reason = write(Array(StarterConfiguration.text.utf8)) {
            Output.error("martlet init: cannot write \(name): \(reason)\n")
            return .configuration
        }
        Output.line(
            """
            \(name) written. Next steps:

              martlet check --config \(name)
              martlet user add ada --config \(name)
              martlet run --config \(name)
              martlet schema > martlet.schema.json     for editors; named in the first line of the file
            """)
        return .ok
    }

    /// - Returns: why it could not be written; `nil` on success.
    private func write(_ text: [UInt8]) -> String? {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            return errno == EEXIST ? "the file exists" : InitCommand.reason
        }
        defer { close(descriptor) }
        var rest = text[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let reason = InitCommand.reason
                unsafe unlink(path)
                return reason
            }
            rest = rest.dropFirst(count)
        }
        return nil
    }

    private static var reason: String {
        guard let text = unsafe strerror(errno) else { return "error \(errno)" }
        return unsafe String(cString: text)
    }
}
