private import CLinux
internal import MartletCore
private import MartletCrypto

/// Where a password comes from: asked for on a terminal, else the first line of standard input; never an argument.
enum PasswordEntry {
    private static let limit = 4096

    /// Asks or reads.
    /// - Parameter name: whose it will be.
    /// - Throws: `user.no_password`, to be answered as wrong usage.
    static func new(for name: String) throws(StartError) -> Secret {
        guard let secret = isatty(0) == 1 ? try ask(name) : line() else { throw refusal("the password is too long") }
        guard secret.count > 0 else { throw refusal("there is no password") }
        return secret
    }

    /// Asks twice on the terminal, which shows nothing of what is typed.
    private static func ask(_ name: String) throws(StartError) -> Secret? {
        guard martlet_terminal_hide(0) == 0 else { throw refusal("the terminal cannot be kept from showing it") }
        defer { martlet_terminal_show() }
        Output.error("Password for \(TerminalText.escaped(name)): ")
        guard let first = line() else { return nil }
        Output.error("The same again: ")
        guard let second = line() else { return nil }
        guard first.withBytes({ first in second.withBytes { ConstantTime.areEqual(first, $0) } }) else {
            throw refusal("the passwords differ")
        }
        return first
    }

    private static func refusal(_ message: String) -> StartError {
        StartError(code: "user.no_password", message: message, exit: .usage)
    }

    /// The next line without its end, empty at the end of the input; `nil` if it is too long or cannot be read.
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
