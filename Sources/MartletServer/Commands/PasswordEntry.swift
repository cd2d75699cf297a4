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
        let secret = isatty(0) == 1 ? TerminalSecret.read("Password for \(name): ", twice: true) : firstLine()
        guard let secret else {
            throw StartError(
                code: "user.no_password", message: "there is no password, or not twice the same", exit: .usage)
        }
        guard secret.count > 0 else {
            throw StartError(code: "user.no_password", message: "the password is empty", exit: .usage)
        }
        return secret
    }

    /// The first line without its end; `nil` if it is too long or cannot be read.
    private static func firstLine() -> Secret? {
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
