private import CLinux
internal import MartletCore
private import MartletCrypto
internal import MartletServer

/// Reads a password from a prompt on a terminal, otherwise from the first line of standard input; never from an
/// argument.
enum PasswordEntry {
    private static let limit = 4096

    /// Reads a new password.
    /// - Parameter name: the user.
    /// - Throws: `user.no_password` with the exit code for wrong usage.
    static func new(for name: String) throws(StartError) -> Secret {
        guard let secret = isatty(0) == 1 ? try prompt(name) : line() else { throw error("the password is too long") }
        guard secret.count > 0 else { throw error("the password is empty") }
        return secret
    }

    /// Prompts twice on the terminal, without echo.
    private static func prompt(_ name: String) throws(StartError) -> Secret? {
        guard martlet_terminal_hide(0) == 0 else { throw error("the terminal's echo cannot be turned off") }
        defer { martlet_terminal_show() }
        Output.error("Password for \(TerminalText.escaped(name)): ")
        guard let first = line() else { return nil }
        Output.error("Repeat the password: ")
        guard let second = line() else { return nil }
        guard first.withBytes({ first in second.withBytes { ConstantTime.areEqual(first, $0) } }) else {
            throw error("the passwords do not match")
        }
        return first
    }

    private static func error(_ message: String) -> StartError {
        StartError(code: "user.no_password", message: message, exit: .usage)
    }

    /// The next line without its newline, empty at the end of the input; `nil` if it is too long or unreadable.
    private static func line() -> Secret? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(limit + 1)
        defer { wipe(&bytes) }
        var byte: UInt8 = 0
        while bytes.count <= limit {
            let count = unsafe CLinux.read(0, &byte, 1)
            if count < 0, martlet_errno() == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 || byte == 0x0A { break }
            bytes.append(byte)
        }
        guard bytes.count <= limit else { return nil }
        return Secret(Array(bytes.last == 0x0D ? bytes.dropLast() : bytes[...]))
    }

    private static func wipe(_ bytes: inout [UInt8]) {
        unsafe bytes.withUnsafeMutableBytes { raw in
            guard let base = raw.baseAddress else { return }
            unsafe explicit_bzero(base, raw.count)
        }
    }
}
